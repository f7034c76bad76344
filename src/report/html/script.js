
"use strict";
(() => {
  const table = document.getElementById("table");
  // A link into a closed part opens it.
  const open = () => {
    const at = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (at && at.tagName === "DETAILS") { at.open = true; at.scrollIntoView(); }
  };
  addEventListener("hashchange", open);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) open();
  });
  open();
  if (!table) return;

  const body = table.tBodies[0];
  const rows = Array.from(body.rows).map((row, index) => ({
    row, text: row.textContent.toLowerCase(), details: document.getElementById("f" + (index + 1)),
  }));
  const form = document.getElementById("filter");
  form.hidden = false;
  const filter = () => {
    const { text, rule, severity } = form.elements;
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const one of rows) {
      const data = one.row.dataset;
      const fits = (!rule.value || data.rule === rule.value) && (!severity.value || data.severity === severity.value)
        && words.every((word) => one.text.includes(word));
      one.row.hidden = !fits;
      if (one.details) one.details.hidden = !fits;
      shown += fits;
    }
    form.elements.shown.value = shown === rows.length ? "" : `${shown} of ${rows.length}`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());

  const ranks = { error: 0, warning: 1, note: 2 };
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = ({ row }) => {
        const text = row.cells[column].textContent.trim();
        return head.dataset.sort === "number" ? Number(text) : head.dataset.sort === "rank" ? ranks[text] : text;
      };
      const keyed = rows.map((one) => [key(one), one.row]);
      keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
      // Moved outside of the page, so that it is laid out once.
      body.remove();
      keyed.forEach(([, row]) => body.append(row));
      table.append(body);
    });
  });
})();
