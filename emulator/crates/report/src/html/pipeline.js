// Iterations of loops as a pipeline: rows are instructions, columns cycles. Draws what loops/view.rs embeds.
(() => {
  "use strict";
  const { causes, loops } = JSON.parse(document.getElementById("pipeline-data")?.textContent ?? "{}");
  const root = document.getElementById("pipeline");
  if (!root || !loops.length) return;
  const STAGES = ["fetch", "fetch buffer", "dispatch", "issue queue", "execution", "waits to commit"];
  const [QUEUE, EXECUTE, COMMIT] = [3, 4, 5];
  const KINDS = ["best", "typical", "worst"];
  // Causes that look alike have one colour: the class of the rectangles.
  const COLOURS = {
    integer: "operation", multiply: "operation", divide: "divider", fp: "operation", divider_busy: "divider",
    load_l1: "l1", load_forward: "l1", load_l2: "l2", load_llc: "llc", load_memory: "memory", load_peer: "memory",
    device: "memory", data_tlb: "tlb", fetch_tlb: "tlb", store: "store", store_queue: "store", port: "port",
    mispredict: "branch", memory_ordering: "branch", flush: "branch", fetch: "front", fetch_cache: "llc", width: "front",
    serialize: "branch", rob_full: "full", registers: "full", load_queue: "full", issue_queue: "full", tags: "full",
    commit: "front", before: "front",
  };
  const colour = (cause) => COLOURS[causes[cause][0]] ?? "front";
  const ROW = 17;
  // Share of an iteration from which on a cause is listed.
  const LISTED_CAUSE = 0.02;
  const SVG = "http://www.w3.org/2000/svg";
  const state = { loop: 0, kind: 1, row: 0, zoom: 0 };

  // Names come from the guest: never as markup.
  function make(tag, attributes = {}, ...children) {
    const svg = ["svg", "g", "rect", "line", "path", "text", "title"].includes(tag);
    const element = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  const loopSelect = make("select");
  loops.forEach((loop, at) => loopSelect.append(make("option", { value: at, title: loop.name }, loop.shown)));
  const kindSelect = make("select");
  const zoomOut = make("button", { type: "button", "aria-label": "fewer pixels for a cycle" }, "−");
  const zoomIn = make("button", { type: "button", "aria-label": "more pixels for a cycle" }, "+");
  const bar = make("div", { class: "path-bar" });
  const chain = make("tbody");
  const chart = make("div", {
    class: "scroll pipe", tabindex: "0", role: "application", "aria-label": "Pipeline of an iteration: arrow keys choose a row",
  });
  const detail = make("output", { class: "pipe-detail" });
  const legend = make("div", { class: "legend" });
  root.append(
    make("h3", {}, "Pipeline"),
    make("div", { class: "controls" },
      make("label", {}, "Loop ", loopSelect), make("label", {}, "Iteration ", kindSelect), make("span", {}, zoomOut, zoomIn),
      make("span", { class: "muted" }, make("kbd", {}, "↑"), " ", make("kbd", {}, "↓"), " row, ", make("kbd", {}, "←"), " ",
        make("kbd", {}, "→"), " what it waited for, ", make("kbd", {}, "1"), " ", make("kbd", {}, "2"), " ",
        make("kbd", {}, "3"), " iteration, ", make("kbd", {}, "+"), " ", make("kbd", {}, "−"), " zoom")),
    bar,
    make("details", {}, make("summary", {}, "Instructions on the critical path, in order of address"),
      make("div", { class: "scroll", tabindex: "0" }, make("table", {},
        make("thead", {}, make("tr", {}, ...["cycles of an iteration", "instruction", "cause", "where"].map((name, at) =>
          make("th", at ? {} : { class: "number" }, name)))), chain))),
    chart, detail, legend);

  const view = () => loops[state.loop].views[state.kind];

  // The causes of an iteration of the loop, on average, and its instructions on the critical path.
  function drawBar() {
    const loop = loops[state.loop];
    const parts = loop.causes.filter((part) => part.cycles >= LISTED_CAUSE * loop.mean);
    bar.replaceChildren(...parts.map((part) => {
      const name = causes.find(([key]) => key === part.cause)[1];
      const share = part.cycles / loop.mean;
      const element = make("span", { class: "pipe-" + (COLOURS[part.cause] ?? "front"), style: `flex:${share}` },
        share > 0.12 ? `${name} ${part.cycles.toFixed(2)}` : "");
      element.title = `${name}: ${part.cycles.toFixed(2)} of ${loop.mean.toFixed(2)} cycles per iteration`;
      return element;
    }));
    chain.replaceChildren(...loop.chain.map((link) => make("tr", {},
      make("td", { class: "number" }, link.cycles.toFixed(2)), make("td", {}, make("code", {}, link.text)),
      make("td", {}, causes.find(([key]) => key === link.cause)[1]),
      make("td", { title: link.label }, link.shown, " ", make("span", { class: "muted" }, (link.source ?? "").split("/").at(-1))))));
  }

  function waits([stage, , , cause]) {
    if (stage === EXECUTE || cause === null) return STAGES[stage];
    return `${STAGES[stage]} (${causes[cause][1]})`;
  }

  // Pixels that a browser draws at most.
  const WIDEST = 60000;

  function draw() {
    const { rows, path, iteration, leftOut, base } = view();
    const end = Math.max(...rows.map(([, , segments]) => segments.at(-1)?.[2] ?? 0)) + 1;
    const labels = make("div", { class: "pipe-labels" });
    const room = Math.max(300, chart.clientWidth - 270);
    const scale = Math.min(Math.min(22, Math.max(1, room / end)) * 1.5 ** state.zoom, WIDEST / end);
    const svg = make("svg", { width: Math.ceil(end * scale) + 8, height: rows.length * ROW + 20, "aria-hidden": "true" });
    const x = (cycle) => cycle * scale;
    let step = 1;
    for (let n = 0; step * scale < 46; n++) step *= n % 3 === 1 ? 2.5 : 2;
    for (let cycle = 0; cycle <= end; cycle += step) {
      svg.append(make("line", { class: "grid", x1: x(cycle), x2: x(cycle), y1: 14, y2: rows.length * ROW + 16 }),
        make("text", { class: "axis", x: x(cycle) + 2, y: 11 }, String(cycle)));
    }
    const top = (row) => 16 + row * ROW;
    svg.prepend(make("rect", {
      class: "pipe-own", x: 0, width: "100%", y: top(iteration[0]), height: (iteration[1] - iteration[0]) * ROW,
    }));
    rows.forEach(([label, text, segments], at) => {
      const own = at >= iteration[0] && at < iteration[1];
      const line = make("div", { class: own ? "own" : "", "data-row": at }, make("code", {}, text));
      line.title = label;
      labels.append(line);
      for (const segment of segments) {
        const [stage, from, to, cause] = segment;
        const kind = cause === null || stage === COMMIT ? "" : ` pipe-${colour(cause)}`;
        const thin = stage === EXECUTE ? 0 : stage === QUEUE ? 3 : 5;
        svg.append(make("rect", {
          class: `stage s${stage}${kind}`, x: x(from), width: Math.max(1, x(to) - x(from) - (scale > 5 ? 0.6 : 0)),
          y: top(at) + 1.5 + thin, height: ROW - 3 - 2 * thin, "data-row": at,
        }, make("title", {}, `${text}\n${waits(segment)}: cycles ${from} to ${to}, ${to - from}`)));
      }
    });
    if (leftOut) labels.append(make("div", {}, `… and ${leftOut} more`));
    // The critical path: a line under the rows that it goes through.
    /** @type {number[] | null} */
    let before = null;
    for (const [row, from, to, cause] of path) {
      const y = top(row) + ROW - 1;
      if (before && before[0] !== row) {
        svg.append(make("path", { class: "pipe-path thin", d: `M${x(from)} ${top(before[0]) + ROW - 1}V${y}` }));
      }
      svg.append(make("path", { class: "pipe-path", d: `M${x(from)} ${y}H${x(to)}` },
        make("title", {}, `critical path, ${causes[cause][1]}: ${to - from} cycles`)));
      before = [row, to];
    }
    svg.append(make("g", { id: "pipe-arrows" }));
    const clicked = (event) => {
      const row = event.target.closest("[data-row]");
      if (row) choose(Number(row.getAttribute("data-row")));
    };
    svg.addEventListener("pointerover", clicked);
    labels.addEventListener("click", clicked);
    const box = make("div", { class: "pipe-box" }, labels, make("div", { class: "pipe-svg" }, svg));
    chart.replaceChildren(box);
    chart.scale = { x, top };
    state.row = Math.min(Math.max(state.row, 0), rows.length - 1);
    drawLegend(rows, base);
    choose(state.row);
    centre();
  }

  // What does not fit is scrolled to where the chosen row executes.
  function centre() {
    const [, , segments] = view().rows[state.row];
    const [, from] = segments.find(([stage]) => stage === EXECUTE) ?? segments.at(-1) ?? [0, 0];
    chart.scrollLeft = chart.scale.x(from) - (chart.clientWidth - 250) / 2;
    chart.scrollTop = chart.scale.top(state.row) - chart.clientHeight / 2;
  }

  function drawLegend(rows, base) {
    const seen = new Map();
    for (const [, , segments] of rows) {
      for (const [stage, , , cause] of segments) {
        if (cause !== null && stage !== COMMIT) seen.set(causes[cause][1], colour(cause));
      }
    }
    const entry = (name, kind) => make("span", {}, make("i", { class: "swatch " + kind }), name);
    legend.replaceChildren(
      ...[...seen].map(([name, kind]) => entry(name, "pipe-" + kind)),
      entry("fetch, waits to commit", "plain"), entry("critical path", "path"),
      make("span", {}, `high: execution; low: waiting. Cycle 0 is ${base.toLocaleString("en-US")} of the hart's`));
  }

  // Shows a row's operands and says what it waited for.
  function choose(at) {
    const { rows, path } = view();
    state.row = at;
    const [label, text, segments, operands] = rows[at];
    for (const line of chart.querySelectorAll(".pipe-labels > div")) {
      line.classList.toggle("chosen", Number(line.getAttribute("data-row")) === at);
    }
    const { x, top } = chart.scale;
    const begins = (row) => rows[row][2].find(([stage]) => stage === EXECUTE);
    const arrows = [];
    const arrow = (from, to, memory) => {
      const [giver, taker] = [begins(from), begins(to)];
      if (!giver || !taker) return;
      const [x1, y1] = [x(Math.min(giver[2], taker[1])), top(from) + ROW / 2];
      const [x2, y2] = [x(taker[1]), top(to) + ROW / 2];
      const bend = Math.max(10, (x2 - x1) / 2);
      arrows.push(make("path", {
        class: "pipe-arrow" + (memory ? " memory" : ""), d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`,
      }), make("path", { class: "pipe-head", d: `M${x2} ${y2}l-6 -3v6z` }));
    };
    operands.forEach(([from, memory]) => arrow(from, at, memory));
    rows.forEach(([, , , others], to) => others.forEach(([from, memory]) => {
      if (from === at) arrow(at, to, memory);
    }));
    chart.querySelector("#pipe-arrows").replaceChildren(...arrows);
    const life = segments.map((segment) => `${waits(segment)} ${segment[2] - segment[1]}`).join(" · ");
    const own = path.filter(([row]) => row === at).reduce((sum, [, from, to]) => sum + to - from, 0);
    detail.textContent = `${text}   ${label}: ${life}${own ? ` · on the critical path for ${own}` : ""}`;
  }

  // What a row waited for last, or who waited for it.
  function neighbour(forward) {
    const { rows } = view();
    const end = (row) => rows[row][2].find(([stage]) => stage === EXECUTE)?.[2] ?? 0;
    const found = forward
      ? rows.findIndex(([, , , operands]) => operands.some(([from]) => from === state.row))
      : rows[state.row][3].map(([from]) => from).sort((a, b) => end(b) - end(a))[0] ?? -1;
    if (found >= 0) reveal(found);
  }
  function reveal(row) {
    choose(Math.min(Math.max(row, 0), view().rows.length - 1));
    centre();
  }
  function pick(kind) {
    state.kind = kind;
    kindSelect.value = kind;
    state.row = view().iteration[0];
    draw();
  }
  function zoom(by) {
    state.zoom = Math.min(6, Math.max(-4, state.zoom + by));
    draw();
  }
  function select() {
    state.loop = Number(loopSelect.value);
    kindSelect.replaceChildren(...KINDS.map((name, at) =>
      make("option", { value: at }, `${name}, ${loops[state.loop].views[at].cycles} cycles`)));
    state.zoom = 0;
    drawBar();
    pick(1);
  }
  const KEYS = {
    ArrowUp: () => reveal(state.row - 1), ArrowDown: () => reveal(state.row + 1),
    ArrowLeft: () => neighbour(false), ArrowRight: () => neighbour(true),
    1: () => pick(0), 2: () => pick(1), 3: () => pick(2), "+": () => zoom(1), "-": () => zoom(-1),
  };
  chart.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    KEYS[event.key]();
  });
  loopSelect.addEventListener("change", select);
  kindSelect.addEventListener("change", () => pick(Number(kindSelect.value)));
  zoomIn.addEventListener("click", () => zoom(1));
  zoomOut.addEventListener("click", () => zoom(-1));
  addEventListener("resize", draw);
  select();
})();
