// The script of a report: light and dark, tooltips, searching, folding, sorting. The page is complete without it.
// Names and values of the table are read from the page as text and never become code or markup.
(() => {
  "use strict";
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // ── light and dark ───────────────────────────────────────────────────────────────────────────────────────
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const remembered = { // a page opened as a file may have no local storage
    get: () => { try { return localStorage.getItem("dpsyn-theme"); } catch { return null; } },
    set: (theme) => { try { localStorage.setItem("dpsyn-theme", theme); } catch { /* the choice is not remembered */ } },
  };
  const isDark = () => (root.dataset.theme ?? (systemDark.matches ? "dark" : "light")) === "dark";
  const toggle = byId("theme");
  const showTheme = () => {
    toggle.textContent = isDark() ? "Light" : "Dark";
    toggle.setAttribute("aria-label", isDark() ? "Switch to light colors" : "Switch to dark colors");
  };
  if (remembered.get()) root.dataset.theme = remembered.get();
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remembered.set(root.dataset.theme);
    showTheme();
  });
  systemDark.addEventListener("change", showTheme);
  showTheme();
  all(".tools").forEach((tools) => { tools.hidden = false; });

  // ── tooltips: the description of a mark, or the names and the number of a cell ───────────────────────────
  const tip = byId("tip");
  const namesOf = (cell) => [cell.closest("tr").cells[0].textContent, cell.closest("table").tHead.rows[0].cells[cell.cellIndex].textContent];
  const wordsOf = (target) => {
    const cell = target.closest?.(".matrix tbody td[class]");
    if (cell) return [namesOf(cell).join(" × "), cell.closest("table").caption?.textContent, cell.textContent].filter(Boolean).join("\n");
    return target.closest?.(".picture [role='graphics-symbol'][aria-label]")?.getAttribute("aria-label");
  };
  document.addEventListener("pointermove", (event) => {
    const words = wordsOf(event.target);
    tip.hidden = !words;
    if (!words) return;
    tip.textContent = words;
    const [width, height] = [tip.offsetWidth, tip.offsetHeight];
    const top = event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  });
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true, capture: true });

  // ── attributes: search, only what differs, fold ──────────────────────────────────────────────────────────
  const cards = all("details.card");
  const [find, differing, fold, cardCount] = ["find", "differing", "fold", "card-count"].map(byId);
  const hasWords = (text, words) => words.toLowerCase().trim().split(/\s+/).every((word) => text.toLowerCase().includes(word));
  if (find) {
    const showCards = () => {
      cards.forEach((card) => {
        card.hidden = !hasWords(card.dataset.name, find.value) || (differing.checked && card.dataset.differs !== "yes");
      });
      const visible = cards.filter((card) => !card.hidden);
      cardCount.textContent = visible.length === cards.length ? `${cards.length} attributes`
        : visible.length ? `${visible.length} of ${cards.length} attributes` : "no attribute matches";
      if (find.value.trim() && visible.length <= 6) visible.forEach((card) => { card.open = true; });
      showFold();
    };
    const isOpen = () => cards.some((card) => !card.hidden && card.open);
    const showFold = () => {
      fold.textContent = isOpen() ? "Fold all" : "Unfold all";
      fold.setAttribute("aria-expanded", String(isOpen()));
    };
    find.addEventListener("input", showCards);
    differing.addEventListener("change", showCards);
    fold.addEventListener("click", () => {
      const open = !isOpen();
      cards.forEach((card) => { if (!card.hidden) card.open = open; });
      showFold();
    });
    cards.forEach((card) => card.addEventListener("toggle", showFold));
    showCards();
  }

  // ── the table of marginals: sort, search, show more ──────────────────────────────────────────────────────
  const table = byId("marginals");
  if (table) {
    const [body, filter, more, rowCount] = [table.tBodies[0], ...["filter", "more", "row-count"].map(byId)];
    const heads = [...table.tHead.rows[0].cells];
    const rows = [...body.rows].map((line) => ({
      line,
      name: line.cells[0].firstChild.textContent.trim(),
      keys: [...line.cells].map((cell, index) => {
        const text = cell.firstChild.textContent.trim();
        if (heads[index].dataset.style === "text") return text;
        return text === "–" ? null : Number(text.replaceAll(",", ""));
      }),
    }));
    const shownAtFirst = 50;
    const state = { column: heads.length - 1, descending: true, all: false };
    const compare = (one, other) => {
      if (one === null || other === null) return (one === null) - (other === null); // empty cells come last
      return (state.descending ? -1 : 1) * (typeof one === "string" ? one.localeCompare(other) : one - other);
    };
    const refresh = () => {
      const text = filter.value.toLowerCase().trim();
      const exact = rows.filter((row) => text.includes(" × ") && [text, text.split(" × ").reverse().join(" × ")].includes(row.name.toLowerCase()));
      const matches = new Set(exact.length ? exact : rows.filter((row) => hasWords(row.name, text)));
      rows.sort((one, other) => compare(one.keys[state.column], other.keys[state.column]));
      let visible = 0;
      rows.forEach((row) => {
        row.line.hidden = !matches.has(row) || (!state.all && visible >= shownAtFirst);
        visible += !row.line.hidden;
      });
      body.append(...rows.map((row) => row.line));
      heads.forEach((cell, index) => {
        cell.setAttribute("aria-sort", index !== state.column ? "none" : state.descending ? "descending" : "ascending");
      });
      rowCount.textContent = `${visible.toLocaleString("en")} of ${rows.length.toLocaleString("en")} marginals`;
      more.hidden = visible === matches.size;
    };
    heads.forEach((cell, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...cell.childNodes);
      cell.append(button);
      button.addEventListener("click", () => {
        state.descending = state.column === index ? !state.descending : cell.dataset.style !== "text";
        state.column = index;
        refresh();
      });
    });
    filter.addEventListener("input", refresh);
    more.addEventListener("click", () => { state.all = true; refresh(); });
    document.addEventListener("click", (event) => {
      const cell = event.target.closest?.(".matrix.pairs tbody td[class]");
      if (!cell) return;
      filter.value = namesOf(cell).join(" × ");
      refresh();
      table.closest("section").scrollIntoView();
    });
    refresh();
  }

  // ── paper ────────────────────────────────────────────────────────────────────────────────────────────────
  addEventListener("beforeprint", () => all("details").forEach((part) => { part.open = true; }));
  root.dataset.ready = "yes";
})();
