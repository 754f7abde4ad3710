/* Processes: those of one command are one row, which opens */

const openCommands = new Set();

// Chooses a process for all of the page.
function chooseProcess(at) {
  byId("process").value = at;
  byId("process").dispatchEvent(new Event("change"));
}

function processTable() {
  byId("processes").hidden = data.processes.length < 3;
  if (byId("processes").hidden) return;
  const largest = data.commands.reduce((most, command) => Math.max(most, command.share), 0);
  const entry = (at) => ({ ...data.processes[at], title: data.processes[at].name, at });
  /** @returns {any[]} */
  const rows = () => data.commands.flatMap((/** @returns {any[]} */ (command) => {
    if (command.members.length < 2) return [entry(command.members[0])];
    return [command, ...(openCommands.has(command.title) ? command.members.map((at) => ({ ...entry(at), above: command })) : [])];
  }));
  const act = (row) => {
    if (row.at !== undefined) return chooseProcess(row.at);
    if (!openCommands.delete(row.title)) openCommands.add(row.title);
    shown.show(rows());
    shown.reveal(shown.rows().indexOf(row), true);
  };
  const twist = (row) => make("span", { class: "twist" }, row.members ? (openCommands.has(row.title) ? "▾" : "▸") : "");
  const of = (row) => row.above ?? row;
  const shown = table(byId("process-table"), [
    { name: "Process", key: (row) => of(row).title },
    { name: "Cycles", number: true, key: (row) => of(row).cycles, sorted: true, width: "8rem" },
    { name: "%", number: true, key: (row) => of(row).share, width: "5.5rem" },
    { name: "Class", key: (row) => of(row).class, width: "6rem" },
    { name: "Cycle stack", width: "6.8rem" },
  ], (row) => make("tr", {},
    make("td", { title: row.title }, row.above ? make("span", { class: "twist" }) : null, twist(row),
      button(row.title, () => act(row), { class: "link", tabindex: -1, "aria-expanded": row.members ? openCommands.has(row.title) : null })),
    make("td", { class: "number" }, number(row.cycles)), oracleCell(row.share, largest), make("td", {}, row.class),
    make("td", {}, miniStack(row.stack))),
  { label: "Processes", keydown: (event, row) => { if (event.key === "Enter") act(row); } });
  shown.show(rows());
}
