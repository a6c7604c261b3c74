// Tables of contenders can be sorted by a column, and copied as CSV or Markdown. Nothing leaves the page but what is copied.
(() => {
  // Units of one kind -> how many of the smallest one they are.
  const UNITS = { ns: 1, "\u00b5s": 1e3, ms: 1e6, s: 1e9, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, MiB: 1048576 };

  const shown = (cell) => (cell.querySelector(".value") ?? cell).firstChild?.textContent.trim() ?? "";
  const number = (cell) => {
    if (/^\d{4}-\d\d-\d\d$/.test(shown(cell))) return Date.parse(shown(cell));
    const [, value, unit] = shown(cell).match(/^(-?[\d.,]+)\s*([^\s\d]*)/) ?? [];
    return value === undefined ? null : parseFloat(value.replaceAll(",", "")) * (UNITS[unit] ?? 1);
  };
  // What has no number, such as the fastest in a column of ratios, stays first.
  const order = (first, second) => {
    const [a, b] = [number(first), number(second)];
    if (a === null || b === null) return (a !== null) - (b !== null) || shown(first).localeCompare(shown(second));
    return a - b;
  };

  const sort = (table, place, heading) => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => (down ? -1 : 1) * order(a.cells[place], b.cells[place]));
    table.tBodies[0].append(...rows);
  };

  const text = (cell) => {
    const title = cell.tagName === "TH" ? cell.cloneNode(true) : (cell.querySelector(".value") ?? cell).cloneNode(true);
    for (const each of title.querySelectorAll(".sign, .tools")) each.remove();
    for (const each of title.querySelectorAll("small")) each.textContent = ` ${each.textContent}`;
    return title.textContent.replace(/\s+/g, " ").trim();
  };
  const cells = (table) => [...table.rows].map((row) => [...row.cells].map(text));
  const csv = (rows) => rows.map((row) => row.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(",")).join("\n");
  const markdown = (rows) => {
    const line = (row) => `| ${row.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
    return [line(rows[0]), line(rows[0].map(() => "---")), ...rows.slice(1).map(line)].join("\n");
  };
  const button = (label, work) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = label;
    made.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(work());
        made.textContent = "copied";
      } catch {
        made.textContent = "not allowed";
      }
      setTimeout(() => { made.textContent = label; }, 1500);
    });
    return made;
  };

  for (const table of document.querySelectorAll("table.verdict:not(:has(tr.settings))")) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, place) => {
      const made = document.createElement("button");
      made.type = "button";
      made.className = "tools sort";
      made.title = `Sort by ${text(heading)}`;
      made.setAttribute("aria-label", made.title);
      made.addEventListener("click", () => sort(table, place, heading));
      heading.append(made);
    });
    const tools = document.createElement("p");
    tools.className = "tools screen";
    tools.append("Copy this table as ", button("CSV", () => csv(cells(table))), " or ", button("Markdown", () => markdown(cells(table))));
    table.parentElement.after(tools);
  }
})();
