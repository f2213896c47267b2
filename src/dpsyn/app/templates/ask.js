// The script of an exported page: it answers questions about one and two attributes from the counts in the page.
(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const make = (tag, text = "", name = "") => { const part = document.createElement(tag); part.textContent = text; if (name) part.className = name; return part; };
  const rows = (number) => number.toLocaleString("en", { maximumFractionDigits: Math.abs(number) < 100 ? 1 : 0 });
  const percent = (share) => `${(100 * share).toLocaleString("en", { maximumFractionDigits: 1, minimumFractionDigits: 1 })} %`;

  // the answer about two attributes is stored once; it is turned if they are asked for the other way around
  const answer = (first, second) => {
    if (second === null) return { ...data.one[first], turned: false };
    const turned = first > second;
    return { ...data.two[turned ? `${second},${first}` : `${first},${second}`], turned };
  };
  const cell = (found, line, column) => (found.shape.length === 1 ? line : found.turned ? column * found.shape[1] + line : line * found.shape[1] + column);

  const table = (headings, lines, texts) => {
    const made = make("table");
    const head = made.createTHead().insertRow();
    headings.forEach((text, index) => { const part = make("th", text, index >= texts ? "number" : ""); part.scope = "col"; head.append(part); });
    const body = made.createTBody();
    lines.forEach((line) => { const row = body.insertRow(); line.forEach((text, index) => row.append(make("td", text, index >= texts ? "number" : ""))); });
    return made;
  };

  const bars = (labels, found, share) => {
    const longest = Math.max(...found.high, ...found.counts, 1e-9);
    const list = make("ul", "", "bars");
    labels.forEach((label, index) => {
      const line = make("li");
      const track = make("span", "", "track-bar");
      const [bar, whisker] = [make("i"), make("b")];
      bar.style.width = `${(100 * Math.max(0, found.counts[index])) / longest}%`;
      const [low, high] = [Math.max(0, found.low[index]), Math.max(0, found.high[index])];
      whisker.style.left = `${(100 * low) / longest}%`;
      whisker.style.width = `${(100 * (high - low)) / longest}%`;
      track.append(bar, whisker);
      line.append(make("span", label, "label"), track, make("span", share(found.counts[index], index), "value"));
      list.append(line);
    });
    return list;
  };

  const matrix = (lines, columns, found, share) => {
    const frame = make("div", "", `matrix${columns.length > 20 ? " dense" : ""}`);
    frame.style.setProperty("--n", columns.length);
    const made = make("table");
    const head = made.createTHead().insertRow();
    head.append(make("td"));
    columns.forEach((text) => { const part = make("th"); part.scope = "col"; part.append(make("span", text)); head.append(part); });
    const largest = Math.max(...found.counts, 1e-9);
    const body = made.createTBody();
    lines.forEach((text, line) => {
      const row = body.insertRow();
      const name = make("th");
      name.scope = "row";
      name.append(make("span", text));
      row.append(name);
      columns.forEach((_, column) => {
        const count = found.counts[cell(found, line, column)];
        row.append(make("td", share(count, line).replace(" %", ""), `h${Math.round(8 * Math.sqrt(Math.max(0, count) / largest))}`));
      });
    });
    const scroll = make("div", "", "scroll");
    scroll.tabIndex = 0;
    scroll.append(made);
    frame.append(scroll);
    return frame;
  };

  const show = () => {
    const first = Number(byId("first").value);
    const second = byId("second").value === "" || Number(byId("second").value) === first ? null : Number(byId("second").value);
    const found = answer(first, second);
    const [lines, columns] = [data.labels[first], second === null ? [""] : data.labels[second]];
    const all = found.counts.reduce((sum, count) => sum + count, 0) || 1;
    const sums = lines.map((_, line) => columns.reduce((sum, __, column) => sum + found.counts[cell(found, line, column)], 0) || 1);
    const kind = byId("as").value;
    const share = (number, line) => (kind === "count" ? rows(number) : percent(number / (kind === "all" || second === null ? all : sums[line])));
    byId("heading").textContent = second === null ? data.names[first] : `${data.names[first]} × ${data.names[second]}`;
    byId("picture").replaceChildren(second === null ? bars(lines, found, share) : matrix(lines, columns, found, share));
    const body = lines.flatMap((one, line) => columns.map((other, column) => {
      const at = cell(found, line, column);
      return [one, ...(second === null ? [] : [other]), share(found.counts[at], line), `${share(found.low[at], line)} … ${share(found.high[at], line)}`];
    }));
    const headings = [data.names[first], ...(second === null ? [] : [data.names[second]]), kind === "count" ? "rows" : "share", "95 % interval"];
    byId("counts").replaceChildren(table(headings, body, second === null ? 1 : 2));
    byId("explanation").replaceChildren(...found.notes.map((text) => make("li", text)));
  };
  ["first", "second", "as"].forEach((id) => byId(id).addEventListener("change", show));
  byId("question").addEventListener("submit", (event) => event.preventDefault());
  show();
})();
