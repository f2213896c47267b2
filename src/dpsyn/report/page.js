// The moving parts of a report: pictures, hovering, sorting, filtering, light and dark.
// Names and values of the table arrive as JSON and leave as text or as data of a picture; none becomes code or markup.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const words = data.words;
  const root = document.documentElement;
  const steps = 9; // of the colours --heat-0 … --heat-8 and --less-4 … --more-4

  const percent = (share) => `${(100 * share).toFixed(Math.abs(share) < 0.0995 ? 2 : 1)} %`;
  const fraction = (number) => number.toFixed(4);
  const element = (name, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };

  // ── light and dark ───────────────────────────────────────────────────────────────────────────────────────
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const remembered = { // a page opened as a file may have no place to remember anything
    get: () => { try { return localStorage.getItem("dpsyn-theme"); } catch { return null; } },
    set: (theme) => { try { localStorage.setItem("dpsyn-theme", theme); } catch { /* then not */ } },
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

  // ── pictures ─────────────────────────────────────────────────────────────────────────────────────────────
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

  const draw = async (place, template, sets, { description, width, height, signals = {}, onClick } = {}) => {
    const fitted = () => Math.max(160, Math.floor(width ?? place.clientWidth));
    let known = fitted();
    const spec = { ...data.templates[template], description, width: known, ...(height && { height }) };
    spec.signals = spec.signals.map((signal) => ({ ...signal, ...(signal.name in signals && { value: signals[signal.name] }) }));
    spec.data = spec.data.map(({ name }) => ({ name, values: sets[name] }));
    const options = { mode: "vega", renderer: "svg", actions: false, defaultStyle: false, ast: true, tooltip: showTip };
    const { view } = await vegaEmbed(place, spec, options);
    if (onClick) view.addEventListener("click", (event, item) => item?.datum && onClick(item.datum));
    if (width) return;
    new ResizeObserver(() => {
      if (!place.clientWidth || fitted() === known) return;
      known = fitted();
      view.width(known).runAsync();
    }).observe(place);
  };

  const rowsOf = (chart) => chart.label.map((label, place) => ({
    place, label,
    reference: Math.max(0, chart.reference[place]),
    synthetic: chart.synthetic[place],
    top: Math.max(chart.reference[place], chart.synthetic[place], chart.high?.[place] ?? 0),
    tip: [
      label,
      `${words.reference}: ${percent(chart.reference[place])}` +
        (chart.low ? ` ± ${percent(chart.high[place] - chart.reference[place])}` : ""),
      `synthetic: ${percent(chart.synthetic[place])}`,
    ].join("\n"),
    ...(chart.low && { low: Math.max(0, chart.low[place]), high: Math.max(0, chart.high[place]) }),
    ...(chart.start && { start: chart.start[place], end: chart.start[place] + 1, middle: chart.start[place] + 0.5 }),
    ...(chart.at && { at: chart.at[place] }),
  }));

  const outlineOf = (rows, proper) => { // the tops of the synthetic bars; null lifts the pen
    const points = [{ x: 0, y: 0 }];
    rows.forEach((row, place) => {
      if (place >= proper) points.push({ x: row.start, y: null }, { x: row.start, y: 0 });
      points.push({ x: row.start, y: row.synthetic }, { x: row.end, y: row.synthetic });
      if (place >= proper - 1) points.push({ x: row.end, y: 0 });
    });
    return points;
  };

  const ticksOf = (rows, proper, width) => {
    const wanted = Math.max(2, Math.floor(width / 64));
    const every = Math.ceil(proper / wanted);
    const marked = rows.filter((row, place) => place < proper && place % every === 0 && place + every / 2 < proper);
    return [
      ...marked.map((row) => ({ x: row.start, label: row.label.split("..")[0], align: "left" })),
      ...rows.slice(proper).map((row) => ({ x: row.end, label: row.label, align: "right" })),
    ];
  };

  const drawAttribute = (place, chart, name) => {
    const rows = rowsOf(chart);
    const sets = { rows, whiskers: chart.low ? rows : [] };
    const options = {
      description: `${name}: shares of rows, ${words.reference} and synthetic`, signals: { exponent: chart.exponent },
    };
    if (chart.template === "bars") return draw(place, "bars", sets, { ...options, height: 12 + 21 * rows.length });
    if (chart.template === "timeline") return draw(place, "timeline", sets, options);
    sets.outline = outlineOf(rows, chart.proper);
    sets.ticks = ticksOf(rows, chart.proper, place.clientWidth - 50);
    return draw(place, "histogram", sets, options);
  };

  const heat = (share) => `var(--heat-${Math.max(0, Math.min(steps - 1, Math.floor(share * steps)))})`;
  const diverging = (share) => {
    const level = Math.max(-4, Math.min(4, Math.round(share * 4)));
    return level === 0 ? "var(--even)" : `var(--${level < 0 ? "less" : "more"}-${Math.abs(level)})`;
  };
  const begin = (label) => // of a range; a value may have dots of its own
    label.length > 11 && /^-?\d/.test(label) ? label.split("..")[0].replace(/T00(:00)*$/, "") : label;
  const named = (labels) => labels.map((label, place) => ({ place, label }));
  const labelled = (labels) => named(labels.map(begin));

  const drawHeatMap = (place) => {
    const { names, cells } = data.heat;
    const most = Math.max(...cells.map(([, , distance, floor]) => distance - floor), data.heat.least);
    const rows = cells.flatMap(([one, other, distance, floor, independent]) => {
      const cell = {
        fill: heat((distance - floor) / most), cursor: "pointer", pair: [names[one], names[other]],
        tip: [
          `${names[one]} × ${names[other]}`, `distance ${fraction(distance)}`,
          `${words.floor} ${fraction(floor)}`, `independent ${fraction(independent)}`,
        ].join("\n"),
      };
      return [{ ...cell, line: one, column: other }, { ...cell, line: other, column: one }];
    });
    document.getElementById("heat-most").textContent = fraction(most);
    const side = Math.max(16, Math.min(46, Math.floor((place.clientWidth - 130) / names.length)));
    return draw(place, "grid", { rows, lines: named(names), columns: named(names) }, {
      description: "How far each pair of attributes is off",
      width: 130 + side * names.length, height: side * names.length,
      signals: { thinned: false },
      onClick: (cell) => cell.pair && showInTable(cell.pair),
    });
  };

  const drawPair = (place, pair, which) => {
    const flat = (table) => table.flat();
    const most = Math.max(...flat(pair.reference), ...flat(pair.synthetic), 1e-9);
    const differences = pair.synthetic.map((line, i) => line.map((share, j) => share - pair.reference[i][j]));
    const widest = Math.max(...flat(differences).map(Math.abs), 1e-9);
    const rows = [];
    pair.lines.forEach((line, i) => pair.columns.forEach((column, j) => {
      const [real, made] = [pair.reference[i][j], pair.synthetic[i][j]];
      if (which !== "difference" && Math.max(0, which === "reference" ? real : made) === 0) return;
      rows.push({
        line: i, column: j, cursor: "default",
        fill: which === "difference" ? diverging(Math.sign(differences[i][j]) * Math.sqrt(Math.abs(differences[i][j]) / widest))
          : heat(Math.sqrt(Math.max(0, which === "reference" ? real : made) / most)),
        tip: [`${pair.first}: ${line}`, `${pair.second}: ${column}`,
          `${words.reference}: ${percent(real)}`, `synthetic: ${percent(made)}`].join("\n"),
      });
    }));
    return draw(place, "grid", { rows, lines: labelled(pair.lines), columns: labelled(pair.columns) }, {
      description: `${pair.first} × ${pair.second}, ${which}`,
      height: Math.max(90, Math.min(380, 17 * pair.lines.length)),
    });
  };

  const pictures = [...document.querySelectorAll("[data-picture]")];
  const drawing = new Map();
  const drawOnce = (place) => {
    if (drawing.has(place)) return drawing.get(place);
    const [kind, number, which] = place.dataset.picture.split(" ");
    const drawn = kind === "heat" ? drawHeatMap(place)
      : kind === "pair" ? drawPair(place, data.pairs[number], which)
        : drawAttribute(place, data.attributes[number], data.names[number]);
    drawing.set(place, drawn);
    return drawn;
  };
  const near = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (!entry.isIntersecting) return;
    near.unobserve(entry.target);
    drawOnce(entry.target);
  }), { rootMargin: "300px" });
  pictures.forEach((place) => near.observe(place));
  const drawRest = async () => { // what is not in sight is drawn while nobody waits, so that it can be printed
    for (const place of pictures) {
      await drawOnce(place);
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
  const [body, filter, more, told] = [table.tBodies[0], ...["filter", "more", "told"].map((id) => document.getElementById(id))];
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
    const exact = named.filter(([, name]) => text.includes(" × ") && name === text); // one marginal, not all that hold it
    const wanted = text.split(/\s+/);
    const found = exact.length ? exact : named.filter(([, name]) => wanted.every((word) => name.includes(word)));
    return found.map(([row]) => row);
  };
  const refresh = () => {
    const sign = state.descending ? -1 : 1;
    const rows = matching().sort((one, other) => {
      const [a, b] = [one[state.column], other[state.column]];
      return a === null || b === null ? compare(a, b) : sign * compare(a, b); // what is unknown comes last
    });
    const visible = state.all ? rows : rows.slice(0, shownAtFirst);
    body.replaceChildren(...visible.map((row) => {
      const line = document.createElement("tr");
      row.forEach((cell, place) => {
        const style = columns[place].style;
        line.append(element("td", cell === null ? "–" : shown[style](cell), style === "text" ? "" : "number"));
      });
      return line;
    }));
    [...table.tHead.rows[0].cells].forEach((cell, place) => {
      cell.setAttribute("aria-sort", place !== state.column ? "none" : state.descending ? "descending" : "ascending");
    });
    told.textContent = `${visible.length.toLocaleString("en")} of ${data.table.rows.length.toLocaleString("en")} marginals`;
    more.hidden = visible.length === rows.length;
  };
  [...table.tHead.rows[0].cells].forEach((cell, place) => cell.querySelector("button").addEventListener("click", () => {
    state.descending = state.column === place ? !state.descending : columns[place].style !== "text";
    state.column = place;
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
