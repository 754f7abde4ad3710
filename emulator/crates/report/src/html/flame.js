/* Flame graph: the root on top, callees or finer code below, as wide as their time */

// Fields of the arrays that stand for nodes, and numbers of the kinds of frames (flame.rs).
const N = indices(data.names.node);
const KINDS = data.names.kinds;
const KIND = indices(KINDS);
// The root of a tree is of no kind.
const NO_KIND = -1;
// Widths in pixels: frames that are narrower are left out; those that have room for a name have one.
const LEAST_FRAME = 2.5;
const LEAST_NAMED_FRAME = 28;

// A tree of nodes with their children and the sums of what is below them: `stack` by part, and `values` of the other measures.
function flameTree(nodes, names, measures) {
  // Plain arrays: of typed ones so many are slow to make and to free.
  const zeros = (length) => new Array(length).fill(0);
  const all = { name: "all", kind: NO_KIND, above: null, below: [], stack: zeros(PART_COUNT), values: zeros(measures), own: 0 };
  const list = nodes.map((node) => {
    const [stack, values] = [zeros(PART_COUNT), zeros(measures)];
    for (let part = 0; part < node[N.stack].length; part += 1) stack[part] = node[N.stack][part];
    for (let at = 0; at < node[N.columns].length; at += 1) values[at] = node[N.columns][at];
    return { name: names[node[N.name]], kind: node[N.kind], module: node[N.module], below: [], stack, values, own: sum(stack), ownValues: node[N.columns] };
  });
  list.forEach((node, at) => {
    node.above = nodes[at][N.above] ? list[nodes[at][N.above] - 1] : all;
    node.above.below.push(node);
    if (node.kind !== KIND.module && node.kind !== KIND.function) node.module = node.above.module ?? -1;
  });
  for (const { above, stack, values } of list.toReversed()) {
    for (let part = 0; part < PART_COUNT; part += 1) above.stack[part] += stack[part];
    for (let at = 0; at < measures; at += 1) above.values[at] += values[at];
  }
  for (const node of [all, ...list]) node.total = sum(node.stack);
  return all;
}

const FRAME = 21;
const shortName = (node) => (node.kind === KIND.line || node.kind === KIND.module ? file(node.name) || node.name : brief(node.name));
const processOf = (node) => { while (node && node.kind > KIND.process) node = node.above; return node; };

// What is under `root` where a node is under `before`, if there is any.
function counterpart(node, before, root) {
  if (node === before) return root;
  const above = node.above && counterpart(node.above, before, root);
  return above?.below.find((child) => child.kind === node.kind && child.name === node.name && child.module === node.module);
}

// A flame graph in `host`. `view` says: root() the tree, value(node) its width, paint(node, size) its background at so many pixels, matches(node) whether
// it is bright, title(node), chosen(node) when one gets the focus, open(node) to show its code.
/**
 * @param {PageElement} host
 * @param {FlameSource} view
 * @returns {FlameView}
 */
function flameGraph(host, view) {
  /** @type {any} */
  let shownRoot = null;
  /** @type {any} */
  let zoomed = null;
  /** @type {any} */
  let focused = null;
  let frames = new Map();
  const children = (node) => node.below.filter((child) => view.value(child) > 0).sort((a, b) => view.value(b) - view.value(a));
  const draw = () => {
    const root = view.root();
    const within = (node) => { while (node && node !== root) node = node.above; return node === root; };
    if (root !== shownRoot) {
      zoomed = (root.name === shownRoot?.name && counterpart(zoomed, shownRoot, root)) || root;
      shownRoot = root;
    }
    const width = host.clientWidth;
    frames = new Map();
    const shown = [];
    let depth = 0;
    const frame = (node, level, left, size, isPath) => {
      const bright = view.matches(node);
      const title = view.title(node);
      const element = make("div", {
        role: "treeitem", tabindex: -1, "aria-level": level + 1, "aria-label": title.replaceAll("\n", ", "),
        class: `frame ${KINDS[node.kind] ?? "all"}${isPath ? " path" : ""}${bright ? "" : " dim"}`, title,
        style: `left:${left.toFixed(1)}px;top:${level * FRAME}px;width:${Math.max(1, size - 1).toFixed(1)}px;background-image:var(--veil),${view.paint(node, size)}`,
      }, size > LEAST_NAMED_FRAME ? make("span", {}, shortName(node)) : null);
      element.node = node;
      frames.set(node, element);
      shown.push(element);
      depth = Math.max(depth, level + 1);
    };
    const path = [];
    for (let node = zoomed.above; node && within(node); node = node.above) path.unshift(node);
    path.forEach((node, level) => frame(node, level, 0, width, true));
    const walk = (node, level, left, size) => {
      frame(node, level, left, size, false);
      // What profilers or another run say may add up to more below than above.
      const per = size / Math.max(view.value(node), sum(node.below.map(view.value))) || 0;
      let at = left;
      for (const child of children(node)) {
        const part = view.value(child) * per;
        // Narrower ones can be told neither apart nor from their edge.
        if (part < LEAST_FRAME) break;
        walk(child, level + 1, at, part);
        at += part;
      }
    };
    if (width > 0) walk(zoomed, path.length, 0, width);
    const had = host.contains(document.activeElement);
    host.replaceChildren(...shown);
    host.style.height = `${depth * FRAME}px`;
    if (!frames.has(focused)) focused = zoomed;
    const element = frames.get(focused);
    if (element) element.tabIndex = 0;
    if (had) element?.focus({ preventScroll: true });
  };
  const focus = (node) => {
    if (!node || !frames.has(node)) return;
    if (frames.has(focused)) frames.get(focused).tabIndex = -1;
    focused = node;
    frames.get(node).tabIndex = 0;
    frames.get(node).focus({ preventScroll: false });
  };
  const zoom = (node) => { zoomed = node; focused = node; draw(); view.chosen(node); };
  host.addEventListener("focusin", (event) => { const { node } = /** @type {Element} */ (event.target); if (node) { focused = node; view.chosen(focused); } });
  host.addEventListener("mouseover", (event) => {
    const node = /** @type {Element} */ (event.target).closest(".frame")?.node;
    if (node) view.chosen(node);
  });
  host.addEventListener("click", (event) => {
    const node = /** @type {Element} */ (event.target).closest(".frame")?.node;
    if (node) zoom(node);
  });
  host.addEventListener("keydown", (event) => {
    const { node } = /** @type {Element} */ (event.target);
    if (!node || event.altKey || event.ctrlKey || event.metaKey) return;
    const beside = (step) => {
      const row = node.above ? children(node.above) : [node];
      return row[row.indexOf(node) + step];
    };
    const act = {
      ArrowDown: () => focus(children(node)[0]), ArrowUp: () => focus(node.above), ArrowLeft: () => focus(beside(-1)),
      ArrowRight: () => focus(beside(1)), Enter: () => zoom(node), " ": () => zoom(node), c: () => view.open(node),
      Escape: () => zoom(view.root()), Backspace: () => zoom(zoomed.above ?? zoomed),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  let last = 0;
  new ResizeObserver(() => { if (host.clientWidth !== last) { last = host.clientWidth; draw(); } }).observe(host);
  return { draw, zoom, top: () => zoom(view.root()) };
}
