// The script of a report: charts, tooltips, sorting, filtering, light and dark.
// Names and values of the table arrive as JSON and are used as text or as chart data only, never as code or markup.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const words = data.words;
  const root = document.documentElement;
  const steps = 9; // of the colors --heat-0 … --heat-8 and --less-4 … --more-4

  const percent = (share) => `${(100 * share).toFixed(Math.abs(share) < 0.0995 ? 2 : 1)} %`;
  const fraction = (number) => number.toFixed(4);
  const element = (name, text, className) => {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  };

  // ── light and dark ───────────────────────────────────────────────────────────────────────────────────────
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const remembered = { // a page opened as a file may have no local storage
    get: () => { try { return localStorage.getItem("dpsyn-theme"); } catch { return null; } },
    set: (theme) => { try { localStorage.setItem("dpsyn-theme", theme); } catch { /* the choice is not remembered */ } },
  };
  const isDark = () => (root.dataset.theme ?? (systemDark.matches ? "dark" : "light")) === "dark";
  const toggle = document.getElementById("theme");
  const showTheme = () => {
    toggle.textContent = isDark() ? "Light" : "Dark";
    toggle.setAttribute("aria-pressed", String(isDark()));
  };
  if (remembered.get()) root.dataset.theme = remembered.get();
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remembered.set(root.dataset.theme);
    showTheme();
  });
  systemDark.addEventListener("change", showTheme);
  showTheme();

  // ── charts ───────────────────────────────────────────────────────────────────────────────────────────────
  const tip = document.getElementById("tip");
  const showTip = (handler, event, item, value) => {
    tip.hidden = value === null || value === undefined;
    if (tip.hidden) return;
    tip.textContent = value;
    const [width, height] = [tip.offsetWidth, tip.offsetHeight];
    const left = Math.min(event.clientX + 14, innerWidth - width - 8);
    const top = event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  };
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  const draw = async (box, template, sets, { description, width, height, signals = {}, onClick } = {}) => {
    const fitted = () => Math.max(160, Math.floor(width ?? box.clientWidth));
    let known = fitted();
    const spec = { ...data.templates[template], description, width: known, ...(height && { height }) };
    spec.signals = spec.signals.map((signal) => ({ ...signal, ...(signal.name in signals && { value: signals[signal.name] }) }));
    spec.data = spec.data.map(({ name }) => ({ name, values: sets[name] }));
    const options = { mode: "vega", renderer: "svg", actions: false, defaultStyle: false, ast: true, tooltip: showTip };
    const { view } = await vegaEmbed(box, spec, options);
    if (onClick) view.addEventListener("click", (event, item) => item?.datum && onClick(item.datum));
    if (width) return;
    new ResizeObserver(() => {
      if (!box.clientWidth || fitted() === known) return;
      known = fitted();
      view.width(known).runAsync();
    }).observe(box);
  };

  const rowsOf = (chart) => chart.label.map((label, index) => ({
    index, label,
    reference: Math.max(0, chart.reference[index]),
    synthetic: chart.synthetic[index],
    top: Math.max(chart.reference[index], chart.synthetic[index], chart.high?.[index] ?? 0),
    tip: [
      label,
      `${words.reference}: ${percent(chart.reference[index])}` +
        (chart.low ? ` ± ${percent(chart.high[index] - chart.reference[index])}` : ""),
      `synthetic: ${percent(chart.synthetic[index])}`,
    ].join("\n"),
    ...(chart.low && { low: Math.max(0, chart.low[index]), high: Math.max(0, chart.high[index]) }),
    ...(chart.start && { start: chart.start[index], end: chart.start[index] + 1, middle: chart.start[index] + 0.5 }),
    ...(chart.at && { at: chart.at[index] }),
  }));

  const outlineOf = (rows, proper) => { // the tops of the synthetic bars; null interrupts the line
    const points = [{ x: 0, y: 0 }];
    rows.forEach((row, index) => {
      if (index >= proper) points.push({ x: row.start, y: null }, { x: row.start, y: 0 });
      points.push({ x: row.start, y: row.synthetic }, { x: row.end, y: row.synthetic });
      if (index >= proper - 1) points.push({ x: row.end, y: 0 });
    });
    return points;
  };

  const ticksOf = (rows, proper, width) => {
    const count = Math.max(2, Math.floor(width / 64));
    const every = Math.ceil(proper / count);
    const marked = rows.filter((row, index) => index < proper && index % every === 0 && index + every / 2 < proper);
    return [
      ...marked.map((row) => ({ x: row.start, label: row.label.split("..")[0], align: "left" })),
      ...rows.slice(proper).map((row) => ({ x: row.end, label: row.label, align: "right" })),
    ];
  };

  const drawAttribute = (box, chart, name) => {
    const rows = rowsOf(chart);
    const sets = { rows, whiskers: chart.low ? rows : [] };
    const options = {
      description: `${name}: shares of rows, ${words.reference} and synthetic`, signals: { exponent: chart.exponent },
    };
    if (chart.template === "bars") return draw(box, "bars", sets, { ...options, height: 12 + 21 * rows.length });
    if (chart.template === "timeline") return draw(box, "timeline", sets, options);
    sets.outline = outlineOf(rows, chart.proper);
    sets.ticks = ticksOf(rows, chart.proper, box.clientWidth - 50);
    return draw(box, "histogram", sets, options);
  };

  const heat = (share) => `var(--heat-${Math.max(0, Math.min(steps - 1, Math.floor(share * steps)))})`;
  const diverging = (share) => {
    const level = Math.max(-4, Math.min(4, Math.round(share * 4)));
    return level === 0 ? "var(--even)" : `var(--${level < 0 ? "less" : "more"}-${Math.abs(level)})`;
  };
  const begin = (label) => // the start of a range; a value can contain dots itself
    label.length > 11 && /^-?\d/.test(label) ? label.split("..")[0].replace(/T00(:00)*$/, "") : label;
  const named = (labels) => labels.map((label, index) => ({ index, label }));
  const labelled = (labels) => named(labels.map(begin));

  const drawHeatMap = (box) => {
    const { names, cells } = data.heat;
    const max = Math.max(...cells.map(([, , distance, floor]) => distance - floor), data.heat.least);
    const rows = cells.flatMap(([one, other, distance, floor, independent]) => {
      const cell = {
        fill: heat((distance - floor) / max), cursor: "pointer", pair: [names[one], names[other]],
        tip: [
          `${names[one]} × ${names[other]}`, `distance ${fraction(distance)}`,
          `${words.floor} ${fraction(floor)}`, `independent ${fraction(independent)}`,
        ].join("\n"),
      };
      return [{ ...cell, line: one, column: other }, { ...cell, line: other, column: one }];
    });
    document.getElementById("heat-max").textContent = fraction(max);
    const side = Math.max(16, Math.min(46, Math.floor((box.clientWidth - 130) / names.length)));
    return draw(box, "grid", { rows, lines: named(names), columns: named(names) }, {
      description: "Excess distance of each pair of attributes",
      width: 130 + side * names.length, height: side * names.length,
      signals: { thinned: false },
      onClick: (cell) => cell.pair && showInTable(cell.pair),
    });
  };

  const drawPair = (box, pair, which) => {
    const flat = (table) => table.flat();
    const max = Math.max(...flat(pair.reference), ...flat(pair.synthetic), 1e-9);
    const differences = pair.synthetic.map((line, i) => line.map((share, j) => share - pair.reference[i][j]));
    const widest = Math.max(...flat(differences).map(Math.abs), 1e-9);
    const rows = [];
    pair.lines.forEach((line, i) => pair.columns.forEach((column, j) => {
      const [reference, synthetic] = [pair.reference[i][j], pair.synthetic[i][j]];
      if (which !== "difference" && Math.max(0, which === "reference" ? reference : synthetic) === 0) return;
      rows.push({
        line: i, column: j, cursor: "default",
        fill: which === "difference" ? diverging(Math.sign(differences[i][j]) * Math.sqrt(Math.abs(differences[i][j]) / widest))
          : heat(Math.sqrt(Math.max(0, which === "reference" ? reference : synthetic) / max)),
        tip: [`${pair.first}: ${line}`, `${pair.second}: ${column}`,
          `${words.reference}: ${percent(reference)}`, `synthetic: ${percent(synthetic)}`].join("\n"),
      });
    }));
    return draw(box, "grid", { rows, lines: labelled(pair.lines), columns: labelled(pair.columns) }, {
      description: `${pair.first} × ${pair.second}, ${which}`,
      height: Math.max(90, Math.min(380, 17 * pair.lines.length)),
    });
  };

  const pictures = [...document.querySelectorAll("[data-picture]")];
  const drawing = new Map();
  const drawOnce = (box) => {
    if (drawing.has(box)) return drawing.get(box);
    const [kind, index, which] = box.dataset.picture.split(" ");
    const drawn = kind === "heat" ? drawHeatMap(box)
      : kind === "pair" ? drawPair(box, data.pairs[index], which)
        : drawAttribute(box, data.attributes[index], data.names[index]);
    drawing.set(box, drawn);
    return drawn;
  };
  const near = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (!entry.isIntersecting) return;
    near.unobserve(entry.target);
    drawOnce(entry.target);
  }), { rootMargin: "300px" });
  pictures.forEach((box) => near.observe(box));
  const drawRest = async () => { // charts outside the window are drawn later, so that the page can be printed
    for (const box of pictures) {
      await drawOnce(box);
      await new Promise((resolve) => setTimeout(resolve));
    }
    root.dataset.drawn = "all";
  };
  requestAnimationFrame(() => setTimeout(drawRest, 50));
  addEventListener("beforeprint", () => {
    pictures.forEach(drawOnce);
    document.querySelectorAll("details").forEach((part) => { part.open = true; });
  });

  // ── the table ────────────────────────────────────────────────────────────────────────────────────────────
  const table = document.getElementById("marginals");
  const [body, filter, more, rowCount] = [table.tBodies[0], ...["filter", "more", "row-count"].map((id) => document.getElementById(id))];
  const columns = data.table.columns;
  const shownAtFirst = 50;
  const state = { column: data.table.sorted, descending: true, all: false };
  const shown = { text: String, count: (n) => n.toLocaleString("en"), fraction, number: (n) => n.toPrecision(3) };
  const compare = (one, other) => {
    if (one === null || other === null) return (one === null) - (other === null);
    return typeof one === "string" ? one.localeCompare(other) : one - other;
  };
  const matching = () => {
    const text = filter.value.toLowerCase().trim();
    const named = data.table.rows.map((row) => [row, String(row[0]).toLowerCase()]);
    const exact = named.filter(([, name]) => text.includes(" × ") && name === text); // one marginal, not all that contain it
    const terms = text.split(/\s+/);
    const matches = exact.length ? exact : named.filter(([, name]) => terms.every((word) => name.includes(word)));
    return matches.map(([row]) => row);
  };
  const refresh = () => {
    const sign = state.descending ? -1 : 1;
    const rows = matching().sort((one, other) => {
      const [a, b] = [one[state.column], other[state.column]];
      return a === null || b === null ? compare(a, b) : sign * compare(a, b); // empty cells come last
    });
    const visible = state.all ? rows : rows.slice(0, shownAtFirst);
    body.replaceChildren(...visible.map((row) => {
      const line = document.createElement("tr");
      row.forEach((cell, index) => {
        const style = columns[index].style;
        line.append(element("td", cell === null ? "–" : shown[style](cell), style === "text" ? "" : "number"));
      });
      return line;
    }));
    [...table.tHead.rows[0].cells].forEach((cell, index) => {
      cell.setAttribute("aria-sort", index !== state.column ? "none" : state.descending ? "descending" : "ascending");
    });
    rowCount.textContent = `${visible.length.toLocaleString("en")} of ${data.table.rows.length.toLocaleString("en")} marginals`;
    more.hidden = visible.length === rows.length;
  };
  [...table.tHead.rows[0].cells].forEach((cell, index) => cell.querySelector("button").addEventListener("click", () => {
    state.descending = state.column === index ? !state.descending : columns[index].style !== "text";
    state.column = index;
    refresh();
  }));
  filter.addEventListener("input", refresh);
  more.addEventListener("click", () => { state.all = true; refresh(); });
  const showInTable = (names) => {
    filter.value = names.join(" × ");
    refresh();
    table.closest("section").scrollIntoView();
  };
  refresh();
  root.dataset.ready = "yes";
})();
