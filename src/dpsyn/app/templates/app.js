// The script of the workbench: uploads with progress, the live forecast, progress of runs. Pages work without most of it.
// Texts from tables are only ever set as text.
(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  document.querySelector(".steps .current")?.scrollIntoView({ inline: "center", block: "nearest" });

  // ── upload: the file itself is the body, so it goes to the disk piece by piece ───────────────────────────
  const drop = byId("drop");
  if (drop) {
    const [input, bar, note] = ["file", "upload-bar", "upload-note"].map(byId);
    const upload = (file) => {
      if (file.size > Number(drop.dataset.limit)) { note.textContent = "The file is too large to upload; use it where it is."; return; }
      const request = new XMLHttpRequest();
      request.open("POST", `/upload?name=${encodeURIComponent(file.name)}`);
      request.setRequestHeader("X-Form-Token", drop.dataset.token);
      request.upload.addEventListener("progress", (event) => { bar.value = event.total ? event.loaded / event.total : 0; });
      request.addEventListener("load", () => {
        if (request.status === 200) { location.assign(request.responseText); return; }
        bar.hidden = true;
        input.disabled = false;
        note.textContent = request.responseText;
      });
      request.addEventListener("error", () => { bar.hidden = true; input.disabled = false; note.textContent = "The server did not answer; is it still running?"; });
      bar.hidden = false;
      input.disabled = true;
      note.textContent = `Copying ${file.name} …`;
      request.send(file);
    };
    input.addEventListener("change", () => { if (input.files[0]) upload(input.files[0]); });
    ["dragenter", "dragover"].forEach((kind) => drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); }));
    ["dragleave", "drop"].forEach((kind) => drop.addEventListener(kind, () => drop.classList.remove("over")));
    drop.addEventListener("drop", (event) => { event.preventDefault(); if (event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]); });
  }

  // ── a small file fills a field: a schema, a plan, a list of codes ────────────────────────────────────────
  const firstColumn = (text) => {
    const lines = text.split(/\r?\n/).filter((line) => line.trim());
    const mark = [";", "\t", ","].find((each) => lines[0]?.includes(each)) ?? "\n";
    return lines.map((line) => line.split(mark)[0].trim().replace(/^"(.*)"$/, "$1").replaceAll('""', '"')).join("\n");
  };
  document.addEventListener("change", async (event) => {
    const input = event.target.closest?.("input[type=file][data-fill]");
    if (!input?.files[0]) return;
    const text = (await input.files[0].text()).replace(/^\ufeff/, "");
    byId(input.dataset.fill).value = "firstColumn" in input.dataset ? firstColumn(text) : text;
  });

  // ── schema: the fields of another kind, search, the check after a change ─────────────────────────────────
  document.addEventListener("change", (event) => {
    const select = event.target.closest?.("select[data-kind]");
    if (!select) return;
    const number = select.dataset.kind;
    const fields = byId(`fields-of-${number}`);
    const entered = Object.fromEntries(all("[name]", fields).map((field) => [field.name, field.value]));
    fields.replaceChildren(byId(`fields-${select.value}`).content.cloneNode(true));
    all("[id], [for], [data-fill]", fields).forEach((part) => {
      ["id", "for", "data-fill"].forEach((name) => {
        if (part.hasAttribute(name)) part.setAttribute(name, part.getAttribute(name).replace("NUMBER", `f${number}`));
      });
    });
    all("[name]", fields).forEach((field) => { if (entered[field.name]) field.value = entered[field.name]; });
  });
  const find = byId("find-entry");
  if (find) {
    const entries = all(".entry");
    const show = () => {
      const words = find.value.toLowerCase().trim().split(/\s+/);
      entries.forEach((entry) => {
        const matches = words.every((word) => entry.dataset.name.toLowerCase().includes(word));
        entry.hidden = !matches || (byId("only-open").checked && entry.dataset.open !== "yes");
      });
      byId("no-entry").hidden = entries.some((entry) => !entry.hidden);
    };
    find.addEventListener("input", show);
    byId("only-open").addEventListener("change", show);
  }
  const post = (address, token) => fetch(address, { method: "POST", body: new URLSearchParams({ form_token: token }) });

  // ── wait for a job, then show its result in place: what somebody has opened or is typing stays ───────────
  const wait = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });
  document.addEventListener("submit", (event) => { all("button", event.target).forEach((button) => { setTimeout(() => { button.disabled = true; }); }); });
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  const refresh = async () => {
    const parts = all("[data-refresh]");
    const address = document.querySelector("[data-page]")?.dataset.page ?? location.href; // a mistake is shown at the address of its form
    const answer = parts.length ? await fetch(address) : null;
    if (!answer?.ok) { if (address === location.href) location.reload(); else location.replace(address); return; }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    parts.forEach((part) => {
      const fresh = page.getElementById(part.id);
      if (fresh?.dataset.refresh !== part.dataset.refresh) return; // another window has changed the page
      part.getAttributeNames().filter((name) => !fresh.hasAttribute(name)).forEach((name) => part.removeAttribute(name));
      [...fresh.attributes].forEach(({ name, value }) => part.setAttribute(name, value));
      part.replaceChildren(...fresh.childNodes);
      watch(part);
    });
  };
  async function poll(address, key) {
    for (;;) {
      await wait(700);
      try {
        const state = await (await fetch(address)).json();
        if (state[key] !== "running" && !(typeof state[key] === "number" && state[key] > 0)) { await refresh(); return; }
      } catch { await wait(2000); }
    }
  }
  const watch = (within) => [within, ...all("[data-start], [data-poll]", within)].forEach(async (part) => {
    const { start, token, poll: address, until } = part.dataset ?? {};
    if (address) poll(address, until);
    else if (start && (await post(start, token)).ok) poll(start.replace(/check$/, "state"), "check");
  });
  watch(document);

  // ── budget: the forecast for what the form says ──────────────────────────────────────────────────────────
  const budget = byId("budget");
  if (budget) {
    const part = byId("forecast");
    let asked = 0;
    let timer = 0;
    const show = async () => {
      const number = ++asked;
      const form = new FormData(budget);
      const query = new URLSearchParams(["epsilon", "delta", "recipe", "target"].map((name) => [name, form.get(name) ?? ""]));
      try {
        const text = await (await fetch(`${budget.dataset.forecast}?${query}`)).text();
        if (number === asked) part.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
      } catch { /* the next change asks again */ }
      all("[data-epsilon]").forEach((button) => button.setAttribute("aria-pressed", String(Number(button.dataset.epsilon) === Number(byId("epsilon").value))));
    };
    const soon = () => { clearTimeout(timer); timer = setTimeout(show, 300); };
    budget.addEventListener("input", (event) => { if (["epsilon", "delta", "recipe", "target"].includes(event.target.name)) soon(); });
    all("[data-epsilon]").forEach((button) => button.addEventListener("click", () => { byId("epsilon").value = button.dataset.epsilon; show(); }));
    show();
    document.addEventListener("submit", async (event) => { // a simulation begins without losing what the form says
      if (!event.target.closest("#details")) return;
      event.preventDefault();
      try { await post(event.target.action, new FormData(event.target).get("form_token")); } finally { await refresh(); }
    });
  }

  // ── run: how far it is ───────────────────────────────────────────────────────────────────────────────────
  const run = byId("run");
  if (run?.dataset.progress) {
    const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
    const item = (text, name) => { const line = document.createElement("li"); line.textContent = text; line.className = name; return line; };
    const show = (now) => {
      byId("phase").textContent = `${capital(now.phase) || "Starting"} …`;
      byId("bar").value = now.share;
      byId("left").textContent = now.left;
      byId("spent").textContent = now.spent;
      byId("steps").replaceChildren(...now.steps.map((text, index) => item(text, now.current === null ? "" : index < now.current ? "past" : index === now.current ? "now" : "")));
      byId("notes").hidden = !now.notes.length;
      byId("note-list").replaceChildren(...now.notes.map((text) => item(text, "")));
    };
    (async () => {
      for (;;) {
        await wait(500);
        try {
          const now = await (await fetch(run.dataset.progress)).json();
          if (now.state !== "running") { location.reload(); return; }
          show(now);
        } catch { byId("left").textContent = "The server does not answer. The release goes on; start dpsyn app again to see it."; await wait(2000); }
      }
    })();
  }
  document.documentElement.dataset.app = "ready";
})();
