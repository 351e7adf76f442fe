"use strict";
// Tables sorted by a column, numbers by value; copy buttons.
(function () {
  const order = new Intl.Collator(undefined, { numeric: true }).compare;

  function key(row, column) {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  }

  function compare(a, b, sign) {
    if (typeof a === "string") return sign * order(a, b);
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
    return sign * (a - b);
  }

  function sort(table, head) {
    const column = head.cellIndex, body = table.tBodies[0];
    const numeric = body.rows[0] && body.rows[0].cells[column].dataset.value !== undefined;
    const now = head.getAttribute("aria-sort");
    const next = now === "descending" ? "ascending" : now === "ascending" ? "descending"
      : numeric ? "descending" : "ascending";
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    const rows = Array.from(body.rows, (row) => [key(row, column), row]);
    rows.sort((a, b) => compare(a[0], b[0], sign));
    body.append(...rows.map((pair) => pair[1]));
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    for (const head of table.tHead.rows[0].cells) {
      head.querySelector("button").addEventListener("click", () => sort(table, head));
    }
  }

  async function copy(button) {
    const code = document.getElementById(button.dataset.copies);
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", () => copy(button));
  }
})();
