/* The report's flame graph and call tree, which show the same */

const flame = { by: "lines", column: -1, shape: "graph", trees: {}, detail: null };
const callers = () => data.flame.callers.length > 0;
// Of profilers nothing is kept over time.
const flameFollows = () => flame.column < 0 && rangeSums() !== null;
const measure = (node) => (flame.column < 0 ? node.total : node.values[flame.column]);
const ownMeasure = (node) => (flame.column < 0 ? node.own : node.ownValues?.[flame.column] ?? 0);

function flameRoot() {
  const key = [flame.by, chosen.process, chosen.thread].join("/");
  return flame.trees[key] ??= (() => {
    const nodes = data.flame[flame.by];
    const all = flame.trees[flame.by] ??= flameTree(flameFollows() ? rangeNodes(nodes, rangeSums()?.[flame.by]) : nodes, data.flame.names, data.flame.columns.length);
    const process = chosen.process ? all.below.find((node) => node.name === data.processes[chosen.process].name) : all;
    if (!chosen.thread || flame.by !== "callers") return process ?? { ...all, below: [], stack: new Float64Array(PART_COUNT), total: 0 };
    // The thread's nodes, of one process or of all.
    const of = (process ? (process === all ? all.below : [process]) : []).flatMap((own) => {
      if (own.name === chosen.thread) {
        return [{ ...own, below: own.below.filter((node) => node.kind !== KIND.thread) }];
      }
      return own.below.filter((node) => node.kind === KIND.thread && node.name === chosen.thread);
    });
    /** @type {any} */
    const root = { name: `threads ${chosen.thread}`, kind: NO_KIND, above: null, below: [], own: 0, stack: new Float64Array(PART_COUNT), values: new Float64Array(data.flame.columns.length) };
    const under = (node, above) => {
      const copy = { ...node, above };
      copy.below = node.below.map((child) => under(child, copy));
      return copy;
    };
    for (const node of of) {
      const copy = under(node, root);
      if (node.name === chosen.thread && node.kind === KIND.process) {
        copy.stack = Float64Array.from({ length: PART_COUNT }, (_, part) => sum(copy.below.map((child) => child.stack[part])));
        copy.values = copy.values.map((_, at) => sum(copy.below.map((child) => child.values[at])));
        copy.total = sum(copy.stack);
      }
      root.below.push(copy);
      copy.stack.forEach((cycles, part) => { root.stack[part] += cycles; });
      copy.values.forEach((cycles, at) => { root.values[at] += cycles; });
    }
    root.total = sum(root.stack);
    return root;
  })();
}

const filtered = () => chosen.module >= 0 || chosen.words !== "";
function nodeMatches(node) {
  if (!filtered()) return true;
  const words = wordsOf(chosen.words);
  const inModule = chosen.module < 0 || (node.kind >= KIND.module && node.module === chosen.module);
  const own = (at) => at.kind >= KIND.module && hasWords(lower(at.name), words);
  const named = () => { for (let at = node; at; at = at.above) if (own(at)) return true; return false; };
  return inModule && (words.length === 0 || named());
}
// Time of what matches; each cycle once.
function matched(node) {
  if (nodeMatches(node) && node.kind >= KIND.module) return measure(node);
  return sum(node.below.map(matched));
}

function flameTitle(node) {
  const root = flameRoot();
  const lines = [node.name, `${number(measure(node))} cycles, ${percent(measure(node) / (measure(root) || 1))} % of ${root.name}`];
  return flame.column < 0 ? [...lines, stackTitle(node.stack)].join("\n") : lines.join("\n");
}

function functionOf(node) {
  while (node && node.kind > KIND.function) node = node.above;
  if (!node || node.kind !== KIND.function) return -1;
  const process = processOf(node);
  return data.functions.findIndex((row) => text(row[F.name]) === node.name && row[F.module] === node.module &&
    data.processes[row[F.process]].name === process?.name);
}
function openNode(node) {
  const at = functionOf(node);
  if (at >= 0) openCode(at, null, node.kind === KIND.line ? node.name : null);
}

function flameDetail(node) {
  flame.detail = node;
  const root = flameRoot();
  const share = (value) => percent(value / (measure(root) || 1)) + " %";
  const canOpen = functionOf(node) >= 0;
  byId("flame-detail").replaceChildren(
    make("b", { class: "name", title: node.name }, node.name),
    make("span", {}, `${number(measure(node))} cycles, ${share(measure(node))}; itself ${share(ownMeasure(node))}`),
    ...(flame.column < 0 ? [make("span", { class: "mini wide", style: `background-image:${gradient(node.stack)}` }),
      make("span", { class: "muted parts" }, stackTitle(node.stack).replaceAll("\n", ", "))] : []),
    ...(canOpen ? [button("Code", () => openNode(node), { class: "plain", title: "Source and disassembly (c)" })] : []));
}

function largestPart(stack) {
  const most = Math.max(...stack);
  return stack.map((cycles) => (cycles === most ? cycles : 0));
}

/** @type {FlameView | null} */
let flameView = null;
/** @type {ShownTable | null} */
let callTree = null;
const opened = new Set();
// Share of all time from which on a node is open at first.
const MAIN_PATH_SHARE = 0.5;
// Width in pixels of a frame that is too narrow for all of its parts.
const NARROW_FRAME = 4;

function callRows(root) {
  /** @type {CallRow[]} */
  const rows = [];
  const walk = (node, depth) => {
    rows.push({ node, depth });
    if (opened.has(node)) {
      for (const child of node.below.filter((below) => measure(below) > 0).sort((a, b) => measure(b) - measure(a))) walk(child, depth + 1);
    }
  };
  walk(root, 0);
  return rows;
}
function toggle(node, at, open = !opened.has(node)) {
  if (!node.below.length) return;
  if (open) opened.add(node);
  else opened.delete(node);
  callTree?.replace(callRows(flameRoot()), at);
}
function drawCallTree() {
  const root = flameRoot();
  // Down to where the time parts.
  if (!opened.has(root)) {
    for (let node = root; node; node = node.below.find((below) => measure(below) > MAIN_PATH_SHARE * measure(root))) opened.add(node);
  }
  const whole = measure(root) || 1;
  const others = chosen.profilers ? data.flame.columns.map((column, at) => ({ at, column: data.columns[column] })) : [];
  callTree = table(byId("call-tree"), [
    { name: "Function" }, { name: "Cycles", number: true, width: "8rem" }, { name: "Total, %", number: true, width: "5rem" },
    { name: "Self, %", number: true, width: "5rem" }, { name: "Cycle stack", width: "6.5rem" },
    ...others.map(({ column }) => ({ name: column.short, number: true, width: "3.9rem", title: `Total by ${column.label}` })),
  ], ({ node, depth }, at) => {
    const open = opened.has(node);
    const twist = make("span", { class: "twist", "aria-hidden": "true" }, node.below.length ? (open ? "▾" : "▸") : "");
    const line = make("tr", { class: nodeMatches(node) ? null : "dim", "aria-level": depth + 1, "aria-expanded": node.below.length ? String(open) : null },
      make("td", { title: node.name, style: `padding-left:${0.4 + 1.1 * Math.min(depth, 24)}rem` }, twist, shortName(node),
        make("span", { class: "muted kind" }, node.kind === KIND.inlined ? "inlined" : "")),
      make("td", { class: "number" }, number(measure(node))), oracleCell(measure(node) / whole, 1),
      make("td", { class: "number" }, percent(ownMeasure(node) / whole)),
      make("td", {}, flame.column < 0 ? miniStack([...node.stack]) : null),
      ...others.map((other) => make("td", { class: "number" }, percent(node.values[other.at] / (root.total || 1)))));
    line.addEventListener("click", () => { toggle(node, at); flameDetail(node); });
    line.addEventListener("focus", () => flameDetail(node));
    return line;
  }, { label: "Call tree", keydown: (event, { node }, at) => {
    const act = { ArrowRight: () => toggle(node, at, true), ArrowLeft: () => toggle(node, at, false), Enter: () => toggle(node, at), c: () => openNode(node) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  } });
  callTree.show(callRows(root));
}

function drawFlame() {
  const graph = flame.shape === "graph";
  byId("flame-graph").hidden = !graph;
  byId("call-tree").hidden = graph;
  for (const shape of ["graph", "tree"]) byId("shape-" + shape).setAttribute("aria-pressed", String(flame.shape === shape));
  byId("flame-legend").hidden = flame.column >= 0;
  const root = flameRoot();
  if (graph) flameView?.draw();
  else drawCallTree();
  flameDetail(root);
  byId("flame-matches").textContent = filtered() ? `matching the filter: ${percent(matched(root) / (measure(root) || 1))} %` : "";
  byId("flame-note").textContent = (chosen.range ? (flameFollows() ? "Of the chosen range. " : "Of the whole run. ") : "") + (flame.by === "callers"
    ? "Callers above, what they call below. An instruction's parts are those that it has in the whole process."
    : "Process, module, function, inlined functions, source line." +
      (callers() ? "" : " Callers are not known: the run did not follow calls (record.call_stacks)."));
  scopes(["flame"]);
}

function setUpFlame() {
  flameView = flameGraph(byId("flame-graph"), {
    root: flameRoot, value: measure, matches: nodeMatches, title: flameTitle, chosen: flameDetail, open: openNode,
    // Where parts are narrower than a pixel, the largest stands for all.
    paint: (node, size) => (flame.column >= 0 ? "linear-gradient(var(--bar),var(--bar))" : gradient(size < NARROW_FRAME ? largestPart(node.stack) : node.stack)),
  });
  const select = (id, options, act) => {
    byId(id).replaceChildren(...options.map(([value, name]) => make("option", { value }, name)));
    byId(id).addEventListener("change", () => { act(byId(id).value); flame.trees = {}; opened.clear(); drawFlame(); });
  };
  if (callers()) flame.by = "callers";
  select("flame-by", [...(callers() ? [["callers", "callers"]] : []), ["lines", "module, function, line"]], (value) => { flame.by = value; });
  select("flame-column", [[-1, "Oracle"], ...data.flame.columns.map((column, at) => [at, data.columns[column].label])],
    (value) => { flame.column = Number(value); });
  const shape = (name) => () => { flame.shape = name; drawFlame(); };
  byId("shape-graph").addEventListener("click", shape("graph"));
  byId("shape-tree").addEventListener("click", shape("tree"));
  byId("flame-top").addEventListener("click", () => flameView?.top());
  byId("flame-legend").append(legend(PARTS));
  keys.push(["t", "flame graph or call tree", () => shape(flame.shape === "graph" ? "tree" : "graph")()]);
}
