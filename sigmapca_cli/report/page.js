"use strict";
(function () {
  // Tables: a header's button sorts by its column, up first, then down; gaps stay last.
  function key(cell) {
    return cell.dataset.value !== undefined ? Number(cell.dataset.value) : cell.textContent.trim();
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return a.localeCompare(b, undefined, { numeric: true });
  }
  function sort(table, column, header) {
    const falling = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.querySelectorAll("th")) other.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const body = table.tBodies[0];
    const gap = (cell) => cell.textContent.trim() === "–";
    const rows = Array.from(body.rows).sort(function (one, other) {
      const a = one.cells[column], b = other.cells[column];
      if (gap(a) || gap(b)) return gap(a) - gap(b);
      return (falling ? -1 : 1) * compare(key(a), key(b));
    });
    body.append(...rows);
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    table.querySelectorAll("th").forEach(function (header, column) {
      header.querySelector("button").addEventListener("click", () => sort(table, column, header));
    });
  }

  // A run that a slider has chosen stands out in the charts and in the table.
  function choose(run) {
    for (const svg of document.querySelectorAll("svg.many")) {
      svg.classList.toggle("chosen", run !== undefined);
      for (const mark of svg.querySelectorAll("[data-run]")) {
        mark.classList.toggle("on", mark.dataset.run === run);
        if (mark.dataset.run === run) svg.append(mark); // what is last is drawn on top
      }
    }
    for (const link of document.querySelectorAll('td a[href^="#run-"]')) {
      link.closest("tr").classList.toggle("on", link.getAttribute("href") === "#run-" + run);
    }
  }

  // Galleries: the sliders' positions are the key of the panel that is shown.
  for (const gallery of document.querySelectorAll(".gallery")) {
    const sliders = Array.from(gallery.querySelectorAll("input[type=range]"));
    if (!sliders.length) continue;
    const panels = Array.from(gallery.querySelectorAll(".panel"));
    const show = function () {
      const wanted = sliders.map((slider) => slider.value).join(",");
      let found;
      for (const panel of panels) {
        panel.hidden = panel.dataset.key !== wanted;
        if (!panel.hidden) found = panel;
      }
      gallery.querySelector(".none").hidden = Boolean(found);
      for (const slider of sliders) {
        const text = JSON.parse(slider.dataset.values)[slider.value];
        slider.setAttribute("aria-valuetext", text);
        slider.closest(".slider").querySelector("output").textContent = text;
      }
      choose(found && found.dataset.ofRun);
    };
    for (const slider of sliders) slider.addEventListener("input", show);
    if (panels.length) panels[0].dataset.key.split(",").forEach((value, i) => (sliders[i].value = value));
    show();
  }

  // A link to something closed opens it.
  function open() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    if (target) target.scrollIntoView();
  }
  window.addEventListener("hashchange", open);
  open();
})();
