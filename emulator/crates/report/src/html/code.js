/* Source and disassembly of a function, side by side */

// `function`: index into data.functions; its listing, and the tables that show it.
/** @type {CodeView} */
const code = { function: -1, lines: null, source: null, items: [], sourceRows: [], pc: null, at: null };

const MOST_OPTIONS = 300;
function codeOptions() {
  const listed = new Set(data.listed);
  const rows = functionsOf().filter((row) => hasTime(row, F));
  if (rangeSums()) rows.sort((a, b) => cyclesOf(b, F) - cyclesOf(a, F));
  const wanted = rows.map((row) => indexOf.get(row) ?? -1).filter((at) => listed.has(at)).slice(0, MOST_OPTIONS);
  if (!wanted.includes(code.function)) {
    const known = data.functions[code.function];
    if (known && ofProcess(known[F.process]) && hasTime(known, F) && !filtered()) wanted.unshift(code.function);
    else code.function = wanted[0] ?? -1;
  }
  byId("listed").replaceChildren(...wanted.map((at) => {
    const row = data.functions[at];
    return make("option", { value: at, title: text(row[F.name]) }, `${owner(row[F.process])}${brief(text(row[F.name]))} (${percent(shareOf(row, F))} %)`);
  }));
  byId("listed").value = code.function;
}

// A function's instructions, and its source lines [file, line, text]. One without a listing has what is known of its hottest.
function listingOf(at) {
  const found = data.listed.indexOf(at);
  if (found >= 0) {
    return block(`listing-data-${found}`, ({ rows, source, stale, strings }) => ({
      stale: new Map(stale),
      rows: rows.map(([flags, row]) => ({ flags, row: decodeRow(row, strings) })),
      source: source.map(([name, line, words]) => [strings[name], line, strings[words]]),
    }));
  }
  const row = data.functions[at];
  const own = row ? allInstructions().filter((inst) => inst[I.process] === row[F.process] && inst[I.function] === text(row[F.name])) : [];
  own.sort((a, b) => (a[I.pc].padStart(16, "0") < b[I.pc].padStart(16, "0") ? -1 : 1));
  return { rows: own.map((inst, index) => ({ flags: index ? 2 : 0, row: inst })), source: [], partial: true };
}

// What the disassembly shows: instructions, gaps, and where inlined code begins.
function codeItems(listing) {
  const items = [];
  let inside = "";
  for (const { flags, row } of listing.rows) {
    if (flags & 2) items.push({ gap: true });
    const inlined = row[I.inlined].join(" in ");
    if (inlined && inlined !== inside) items.push({ inlined });
    inside = inlined;
    items.push({ row, leader: flags & 1 });
  }
  return items;
}

// Source lines with the cycles of their instructions, and gaps between those that do not follow each other.
function sourceItems(listing) {
  const time = new Map();
  for (const { row } of listing.rows) {
    const known = time.get(row[I.source]) ?? { share: 0, stack: new Array(PART_COUNT).fill(0) };
    const part = cyclesOf(row, I) / (row[I.cycles] || 1);
    known.share += shareOf(row, I);
    row[I.stack].forEach((share, at) => { known.stack[at] += share * part; });
    time.set(row[I.source], known);
  }
  const items = [];
  /** @type {any} */
  let before = null;
  for (const [name, line, words] of listing.source) {
    if (!before || before[0] !== name) items.push({ file: name, stale: listing.stale?.get(name) });
    else if (before[1] + 1 !== line) items.push({ gap: true });
    items.push({ at: `${name}:${line}`, line, words, time: time.get(`${name}:${line}`) });
    before = [name, line];
  }
  return items;
}

const hottest = (items, cycles) => items.reduce((most, item, at) => (cycles(item) > cycles(items[most]) ? at : most), 0);

/**
 * @param {string | null} [pc]
 * @param {string | null} [at]
 */
function showCode(pc = null, at = null, focus = false) {
  const host = byId("listing-table");
  const panes = byId("code-panes");
  const own = data.functions[code.function];
  if (!own) {
    panes.classList.remove("both");
    byId("code-note").textContent = "";
    return host.replaceChildren(make("p", { class: "muted empty" }, "No listing for this choice."));
  }
  const listing = listingOf(code.function) ?? { rows: [], source: [], partial: true };
  code.items = codeItems(listing);
  code.sourceRows = sourceItems(listing);
  const time = (item) => (item.row ? cyclesOf(item.row, I) : 0);
  const first = pc === null ? -1 : code.items.findIndex((item) => item.row?.[I.pc] === pc);
  const ofLine = at === null ? -1 : hottest(code.items, (item) => (item.row?.[I.source] === at ? 1 + time(item) : 0));
  const start = first >= 0 ? first : ofLine >= 0 ? ofLine : hottest(code.items, time);
  code.pc = code.items[start]?.row?.[I.pc] ?? null;
  code.at = code.items[start]?.row?.[I.source] ?? null;
  byId("code-note").textContent = listing.partial
    ? "Only its most expensive instructions are in this page."
    : [...(listing.stale?.values() ?? []), "A rule parts basic blocks, dots stand for code that never ran."].join(". ");
  panes.classList.toggle("both", code.sourceRows.length > 0);
  byId("source-pane").hidden = code.sourceRows.length === 0;
  disassembly(host, start, focus);
  if (code.sourceRows.length) sourcePane();
}

function disassembly(host, start, focus) {
  const largest = code.items.reduce((most, item) => Math.max(most, item.row ? shareOf(item.row, I) : 0), 0);
  // Beside the source itself, or where none is known, it says nothing.
  const hasSource = !code.sourceRows.length && code.items.some(({ row }) => row?.[I.source]);
  const columns = [
    { name: "Address", width: "8.4rem" }, { name: "Disassembly" }, ...(hasSource ? [{ name: "Source", width: "9rem" }] : []),
    { name: "Cycles", number: true, width: "7rem" }, { name: "Oracle, %", number: true, width: "5.6rem" },
    { name: "Cycle stack", width: "6.8rem" }, ...profilerColumns(I),
  ];
  const span = columns.length;
  const choose = (item) => {
    code.pc = item.row[I.pc];
    code.at = item.row[I.source];
    code.lines?.redraw();
    sourcePane();
  };
  code.lines = table(host, columns.map((column) => ({ ...column, key: null })), (item) => {
    if (item.gap) return make("tr", { class: "gap" }, make("td", { colspan: span }, "⋯"));
    if (item.inlined) return make("tr", { class: "inline" }, make("td", { colspan: span, title: item.inlined }, "inlined " + item.inlined));
    const { row } = item;
    const state = [item.leader ? "leader" : "", row[I.pc] === code.pc ? "chosen" : row[I.source] && row[I.source] === code.at ? "linked" : ""];
    const line = make("tr", { class: state.join(" ") },
      make("td", { class: "code", title: [labelTitle(row), sourceTitle(row)].join("\n") }, mark(row), row[I.address]),
      make("td", { class: "code", title: row[I.text] }, row[I.text].replace("\t", " ")),
      hasSource ? sourceCell(row) : null,
      make("td", { class: "number" }, number(cyclesOf(row, I))),
      oracleCell(shareOf(row, I), largest),
      make("td", {}, cyclesOf(row, I) > 0 ? miniStack(row[I.stack]) : null),
      ...profilerCells(row, I, largest));
    line.addEventListener("click", () => choose(item));
    return line;
  }, { label: "Disassembly", keydown: (event, item) => { if (event.key === "Enter" && item.row) choose(item); } });
  code.lines.show(code.items);
  code.lines?.reveal(start, focus);
}

function sourcePane() {
  if (!code.sourceRows.length) return;
  const largest = code.sourceRows.reduce((most, item) => Math.max(most, item.time?.share ?? 0), 0);
  code.source = table(byId("source-pane"), [
    { name: "Line", number: true, width: "3.6rem" }, { name: "Oracle, %", number: true, width: "5.6rem" }, { name: "Source" },
  ], (item) => {
    if (item.gap) return make("tr", { class: "gap" }, make("td", { colspan: 3 }, "⋯"));
    if (item.file) return make("tr", { class: "inline" }, make("td", { colspan: 3, title: [item.stale, item.file].filter(Boolean).join("\n") },
      item.stale ? make("b", { class: "mark" }, "changed since: ") : null, item.file));
    const line = make("tr", { class: item.at === code.at ? "chosen" : item.time ? "" : "cold" },
      make("td", { class: "number code" }, item.line),
      item.time ? oracleCell(item.time.share, largest) : make("td"),
      make("td", { class: "code source", title: item.time ? stackTitle(item.time.stack) : null }, item.words));
    line.addEventListener("click", () => chooseLine(item));
    return line;
  }, { label: "Source", keydown: (event, item) => { if (event.key === "Enter") chooseLine(item); } });
  code.source.show(code.sourceRows);
  code.source?.reveal(code.sourceRows.findIndex((item) => item.at && item.at === code.at), false);
}
function chooseLine(item) {
  if (!item.time) return;
  code.at = item.at;
  code.pc = null;
  code.source?.redraw();
  code.lines?.reveal(hottest(code.items, (other) => (other.row?.[I.source] === item.at ? 1 + cyclesOf(other.row, I) : 0)), false);
}

// Opens the code of a function at an address, or at a source line.
/**
 * @param {number} at
 * @param {string | null} [pc]
 * @param {string | null} [line]
 */
async function openCode(at, pc = null, line = null) {
  const row = data.functions[at];
  if (!row) return;
  await whole;
  if (!ofProcess(row[F.process])) {
    chosen.process = row[F.process];
    refresh();
  }
  code.function = at;
  if (byId("listed").querySelector(`option[value="${at}"]`) === null) {
    byId("listed").prepend(make("option", { value: at, title: text(row[F.name]) }, `${owner(row[F.process])}${brief(text(row[F.name]))} (${percent(shareOf(row, F))} %)`));
  }
  byId("listed").value = at;
  showCode(pc, line, true);
  byId("code").scrollIntoView();
}
