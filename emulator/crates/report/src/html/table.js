/* Tables of any length: only the rows in sight are elements */

// How high a row is, by the element that has the table.
const rowHeights = new WeakMap();

// Shows `columns` ({ name, key, number, width, title, sorted }) of the list given to `show`; `rowOf` makes a row's element. All
// rows are equally high. Columns with a `key` sort the list. Arrow keys move; `keydown` hears the others.
/**
 * @param {PageElement} host
 * @param {TableColumn[]} columns
 * @param {(row: any, at: number) => PageElement} rowOf
 * @param {TableOptions} [options]
 * @returns {ShownTable}
 */
function table(host, columns, rowOf, { keydown = null, label = null } = {}) {
  /** @type {any[]} */
  let rows = [];
  let from = 0;
  let focused = 0;
  let height = rowHeights.get(host) ?? 0;
  let sort = { column: columns.findIndex((column) => column.sorted), down: true };
  const heads = columns.map((column, index) => {
    const inner = column.key ? make("button", { type: "button" }, column.name) : column.name;
    const head = make("th", { scope: "col", class: column.number ? "number" : null, title: column.title,
      style: column.width ? `width:${column.width}` : null }, inner);
    if (column.key && typeof inner !== "string") inner.addEventListener("click", () => {
      sort = { column: index, down: sort.column === index ? !sort.down : Boolean(column.number) };
      order();
      host.scrollTop = 0;
      draw();
    });
    return head;
  });
  const body = make("tbody");
  const [above, below] = [make("tr", { class: "space" }), make("tr", { class: "space" })];
  const element = make("table", { class: "fixed", "aria-label": label }, make("thead", {}, make("tr", {}, ...heads)), body);
  host.scrollTop = 0;
  const hostHeight = host.clientHeight;
  host.replaceChildren(element);
  const space = (line, count) => { line.style.height = `${count * height}px`; line.hidden = count === 0; };
  // To ask where the element is scrolled to costs a layout.
  const draw = (top = host.scrollTop, tall = host.clientHeight) => {
    const seen = height ? Math.ceil(tall / height) : 30;
    const first = height ? Math.floor(top / height) : 0;
    from = Math.max(0, Math.min(first - 15, rows.length - seen - 30));
    const to = Math.min(rows.length, from + seen + 30);
    const had = body.contains(document.activeElement);
    body.replaceChildren(above, ...rows.slice(from, to).map((row, at) => {
      const line = rowOf(row, from + at);
      line.tabIndex = from + at === focused ? 0 : -1;
      line.setAttribute("aria-rowindex", String(from + at + 2));
      return line;
    }), below);
    if (!height && rows.length) rowHeights.set(host, height = body.children[1].offsetHeight);
    element.setAttribute("aria-rowcount", String(rows.length + 1));
    space(above, from);
    space(below, rows.length - to);
    if (had) lineOf(focused)?.focus({ preventScroll: true });
  };
  const lineOf = (at) => (at >= from ? body.children[1 + at - from] : null);
  const order = () => {
    if (sort.column >= 0) {
      const { key, number: numeric } = columns[sort.column];
      heads.forEach((head, index) => {
        if (index === sort.column) head.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      const sign = sort.down ? -1 : 1;
      rows = rows.map((row) => [key?.(row), row])
        .sort((a, b) => sign * (numeric ? a[0] - b[0] : a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)).map(([, row]) => row);
    }
    focused = 0;
  };
  // Puts a row into the middle, and the focus on it if asked to.
  const reveal = (at, focus) => {
    focused = Math.max(0, Math.min(at, rows.length - 1));
    host.scrollTop = focused * height - host.clientHeight / 2;
    draw();
    if (focus) lineOf(focused)?.focus({ preventScroll: true });
  };
  host.onscroll = () => {
    const first = Math.floor(host.scrollTop / (height || 1));
    const seen = Math.ceil(host.clientHeight / (height || 1));
    if ((from > 0 && first < from + 4) || (from + body.children.length - 2 < rows.length && first + seen > from + body.children.length - 6)) draw();
  };
  body.addEventListener("keydown", (event) => {
    const line = /** @type {Element} */ (event.target).closest("tr");
    if (!line || event.target !== line || event.altKey || event.ctrlKey || event.metaKey) return;
    const at = from + [...body.children].indexOf(line) - 1;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -1e9, End: 1e9 };
    if (!(event.key in steps)) return keydown?.(event, rows[at], at);
    event.preventDefault();
    focused = Math.max(0, Math.min(at + steps[event.key], rows.length - 1));
    const top = host.scrollTop;
    if ((focused + 3) * height > top + host.clientHeight) host.scrollTop = (focused + 3) * height - host.clientHeight;
    else if (focused * height < top) host.scrollTop = focused * height;
    draw();
    lineOf(focused)?.focus({ preventScroll: true });
  });
  return {
    show(list) { rows = list; order(); draw(0, hostHeight); },
    // The same place in another list, as when a row opens.
    replace(list, at) { rows = list; focused = at; draw(); },
    redraw() { draw(); },
    reveal,
    rows: () => rows,
  };
}

/* Cells of rows: share of the Oracle, and of each profiler */

// `index` counts all columns, `at` those whose shares the rows have.
const primary = data.columns?.map((column, index) => ({ ...column, index })).filter((column) => column.primary)
  .map((column, at) => ({ ...column, at })) ?? [];
// Rows have shares of their process; together they are shown as shares of all cycles.
const scale = (row) => (chosen.process === 0 ? data.processes[row[F.process]].share : 1);
const owner = (process) => (chosen.process === 0 ? data.processes[process].name + ": " : "");
const ofProcess = (process) => chosen.process === 0 || process === chosen.process;

function oracleCell(share, largest) {
  return make("td", { class: "number oracle", style: `--w:${(100 * share / (largest || 1)).toFixed(1)}%` }, percent(share));
}
function profilerColumns(fields) {
  if (!chosen.profilers || chosen.range) return [];
  return primary.map((column) => ({
    name: column.short, number: true, width: "3.9rem", key: (row) => scale(row) * row[fields.shares][column.at],
    title: `Share by ${column.label}`,
  }));
}
// Difference from the Oracle, in points of per cent, that shows as none.
const NO_DIFFERENCE = 0.05;
function profilerCells(row, fields, largest) {
  if (!chosen.profilers || chosen.range) return [];
  return primary.map((column) => {
    const share = scale(row) * row[fields.shares][column.at];
    const points = 100 * (share - scale(row) * row[fields.share]);
    const strength = Math.min(70, 70 * Math.sqrt(Math.abs(points) / 100 / (largest || 1)));
    return make("td", {
      class: "number " + (Math.abs(points) < NO_DIFFERENCE ? (share ? "" : "zero") : points > 0 ? "over" : "under"),
      style: Math.abs(points) < NO_DIFFERENCE ? null : `--d:${strength.toFixed(0)}`,
      title: `${column.label}: ${(100 * share).toFixed(3)} %, ${points >= 0 ? "+" : ""}${points.toFixed(3)} points`,
    }, percent(share));
  });
}
