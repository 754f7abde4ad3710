/* The page: header, filters, run, and what is drawn when */

function header() {
  const { cycles, idle, instructions, ipc, traps } = data.totals;
  const { elapsed } = data.totals;
  const tiles = [
    ...(elapsed ? [[elapsed.ms == null ? compact(elapsed.cycles) : elapsed.ms.toFixed(3) + " ms",
      elapsed.ms == null ? "cycles elapsed" : `elapsed, ${compact(elapsed.cycles)} cycles`, number(elapsed.cycles) + " cycles elapsed"]] : []),
    [compact(cycles), harts.count > 1 && harts.own === "all" ? "cycles of all harts" : "cycles", number(cycles)],
    [compact(instructions), "instructions", number(instructions)],
    [ipc.toFixed(2), "instructions per cycle", ""],
    [cycles ? (100 * idle / cycles).toFixed(1) + " %" : "0 %", "idle, not profiled", number(idle) + " cycles"],
    [compact(traps), "traps", number(traps)],
    [number(data.processes.length - 1), "processes", ""],
  ];
  byId("tiles").append(...tiles.map(([value, name, title]) =>
    make("div", { class: "tile", title: title || null }, make("b", {}, value), make("span", {}, name))));
  const about = data.meta?.description ?? data.meta?.command ?? data.meta?.spec?.run?.command;
  if (typeof about === "string") byId("subtitle").textContent = about.trim();
}

/* Filters */

function options(id, list, value) {
  byId(id).replaceChildren(...list.map(([of, name]) => make("option", { value: of }, name)));
  byId(id).value = value;
}

function filters() {
  const all = chosen.range ? sum(rangeStack(0)) || 1 : 1;
  const share = (at) => (chosen.range ? sum(rangeStack(at)) / all : data.processes[at].share);
  const option = (at) => make("option", { value: at }, `${data.processes[at].name} (${percent(share(at))} %)`);
  byId("process").replaceChildren(option(0), ...data.commands.map(({ title, members }) => {
    if (members.length < 2) return option(members[0]);
    return make("optgroup", { label: `${title} (${percent(sum(members.map(share)))} %)` }, ...members.map(option));
  }));
  byId("process").value = chosen.process;
  const own = data.functions.filter((row) => ofProcess(row[F.process]));
  const modules = new Map();
  for (const row of own) modules.set(row[F.module], (modules.get(row[F.module]) ?? 0) + shareOf(row, F));
  if (!modules.has(chosen.module)) chosen.module = -1;
  options("module", [[-1, "all modules"], ...[...modules].sort((a, b) => b[1] - a[1])
    .map(([at, part]) => [at, `${file(data.modules[at].path) || data.modules[at].path} (${percent(part)} %)`])], chosen.module);
  const names = new Set();
  data.flame.callers.forEach((node) => {
    if (node[N.kind] !== KIND.thread) return;
    const process = data.flame.names[data.flame.callers[node[N.above] - 1][N.name]];
    if (chosen.process && process !== data.processes[chosen.process].name) return;
    names.add(process).add(data.flame.names[node[N.name]]);
  });
  if (!names.has(chosen.thread)) chosen.thread = "";
  byId("thread").parentElement.hidden = names.size === 0;
  options("thread", [["", "all threads"], ...[...names].map((name) => [name, name])], chosen.thread);
  byId("range").hidden = !chosen.range;
  if (chosen.range) byId("range").textContent = `cycle ${compact(chosen.range[0])} to ${compact(chosen.range[1])} ✕`;
  const notes = rangeNotes();
  if (chosen.thread) {
    notes.push(`Of threads ${chosen.thread}: flame graph and call tree by callers. Of all threads of the process: everything else.`);
  }
  if (filtered()) {
    notes.push("By module and words: flame graph and call tree (what matches is bright), functions, code, instructions. Of all: the rest.");
  }
  byId("notes").replaceChildren(...notes.map((words) => make("p", {}, words)));
  byId("range-limits").textContent = rangeLimits().join(" ");
}

// Each of several harts has a page of its own, below that of all.
const harts = {
  count: Array.isArray(data.meta?.harts) ? data.meta.harts.length : 1,
  own: /\/hart(\d+)\/[^/]*$/.exec(location.pathname)?.[1] ?? "all",
};
function hartLinks() {
  const { count, own } = harts;
  byId("hart").parentElement.hidden = count < 2;
  const each = Array.from({ length: count }, (_, hart) => [String(hart), hart]);
  options("hart", [["all", "all"], ...each], own);
  byId("hart").addEventListener("change", () => {
    const hart = byId("hart").value;
    location.href = (own === "all" ? "" : "../") + (hart === "all" ? "" : `hart${hart}/`) + "report.html";
  });
}

/* Run */

// Nested settings by their dotted names, lists of plain values in one line.
function* settings(value, path) {
  if (value === null || typeof value !== "object") yield [path, String(value)];
  else if (Array.isArray(value) && value.every((entry) => entry === null || typeof entry !== "object")) {
    yield [path, value.join(", ")];
  } else {
    for (const [name, entry] of Object.entries(value)) yield* settings(entry, path ? `${path}.${name}` : name);
  }
}

function run() {
  byId("meta").append(...[...settings(data.meta ?? {}, "")].map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", { title: value }, value))));
  if (data.warnings.length) {
    byId("warnings").append(make("h3", {}, "Warnings"), make("ul", {}, ...data.warnings.map((line) => make("li", {}, line))));
  }
  const rows = [...data.modules].sort((a, b) => b.share - a.share).map((module) => make("tr", {},
    make("td", { title: module.file, class: "wide" }, module.path),
    make("td", { class: "number" }, percent(module.share)),
    make("td", { class: module.file ? "" : "zero" }, module.file ? "found" : "no file"),
    make("td", { class: "code zero", title: module.build_id }, (module.build_id || "").slice(0, 12))));
  byId("modules").append(make("table", {}, make("thead", {}, make("tr", {}, make("th", {}, "Module"),
    make("th", { class: "number" }, "cycles, %"), make("th", {}, "Symbols"), make("th", {}, "Build ID"))), make("tbody", {}, ...rows)));
}

/* What is drawn when */

const pause = () => new Promise((resolve) => { setTimeout(resolve); });
// When what was drawn is on the screen; a page that nobody sees has no frames.
const seen = () => new Promise((resolve) => {
  requestAnimationFrame(() => setTimeout(resolve));
  setTimeout(resolve, 100);
});
let drawing = 0;
// What is to be drawn after what a reader sees first.
let owed = [];
function refresh() {
  timeline();
  return refreshRange([events, errors, sentences, sectionLinks]);
}
// Draws what follows a range of time: what a reader sees first, and then the rest, a part at a time. A later call takes over.
async function refreshRange(others = []) {
  const own = ++drawing;
  owed = [...new Set([drawCode, instructionTable, threads, stacks, topDown, ...others, ...owed, scopes])];
  // What is kept over time comes behind the script.
  if (chosen.range) await whole;
  if (own !== drawing) return;
  drawFirst();
  await seen();
  await whole;
  while (own === drawing && owed.length) {
    owed.shift()();
    await pause();
  }
  // Those who test the page can tell that it was built.
  if (own === drawing) document.documentElement.dataset.ready = "yes";
}
function drawFirst() {
  followRange();
  filters();
  drawFlame();
  functionTable();
  scopes(["functions"]);
}
// While a range is drawn: what a reader sees first follows at the next frame, unless that took too long before.
const following = { asked: false, milliseconds: 0 };
function followSoon() {
  if (following.asked || following.milliseconds > 100 || document.readyState === "loading") return;
  following.asked = true;
  requestAnimationFrame(() => {
    following.asked = false;
    // What is kept over time is read once.
    rangeSums();
    const begun = performance.now();
    drawFirst();
    following.milliseconds = performance.now() - begun;
  });
}
function drawCode() {
  codeOptions();
  showCode(code.pc);
}

function listen() {
  const choose = (id, act) => byId(id).addEventListener("change", () => { act(byId(id).value); refresh(); });
  choose("process", (value) => { chosen.process = Number(value); });
  choose("thread", (value) => { chosen.thread = value; flame.by = value ? "callers" : flame.by; byId("flame-by").value = flame.by; });
  choose("module", (value) => { chosen.module = Number(value); });
  let pending = 0;
  byId("filter").addEventListener("input", () => {
    clearTimeout(pending);
    pending = setTimeout(() => { chosen.words = byId("filter").value.trim(); refresh(); }, 150);
  });
  byId("profilers").addEventListener("change", () => { chosen.profilers = byId("profilers").checked; refresh(); });
  const all = () => { chosen.range = null; timeline(); refreshRange(); };
  byId("range").addEventListener("click", all);
  byId("listed").addEventListener("change", () => { code.function = Number(byId("listed").value); showCode(); });
  byId("accused").addEventListener("change", sentences);
  // Places that the verdict names.
  document.addEventListener("click", (event) => {
    const place = /** @type {Element} */ (event.target).closest("a[data-function]");
    if (!place) return;
    event.preventDefault();
    const { process, pc } = place.dataset;
    openCode(data.functions.findIndex((row) => row[F.process] === Number(process) && text(row[F.name]) === place.dataset.function), pc);
  });
  byId("help-button").addEventListener("click", help);
  const clear = () => {
    Object.assign(chosen, { thread: "", module: -1, words: "", range: null });
    byId("filter").value = "";
    refresh();
  };
  const nextTheme = theme();
  keys.unshift(
    ["?", "this list", help], ["/", "filter by words", () => byId("filter").focus()],
    ["p", "choose a process", () => byId("process").focus()], ["m", "choose a module", () => byId("module").focus()],
    ["x", "clear filters", clear], ["]", "next section", () => section(1)], ["[", "section before", () => section(-1)],
    ["f", "to the flame graph", () => { byId("flame").scrollIntoView(); byId("flame-graph").querySelector("[tabindex='0']")?.focus({ preventScroll: true }); }],
    ["d", "light, dark, or as the system", nextTheme]);
  keys.push(["↑ ↓ ← →", "flame graph: up, down, to the sides; call tree: move, open, close; tables: move; time: move the range", null],
    ["Enter", "flame graph: zoom in; tables: open", null], ["Esc", "flame graph: zoom out; time: all of it", null],
    ["c", "flame graph and call tree: source and disassembly", null]);
  byId("filter").addEventListener("keydown", (event) => { if (event.key === "Escape") { clear(); byId("filter").blur(); } });
}

header();
hartLinks();
setUpFlame();
listen();
errorLegend();
byId("stack-legend").append(legend(CATEGORIES));
run();
processTable();
sectionLinks();
refresh();
