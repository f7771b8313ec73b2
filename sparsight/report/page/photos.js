// Opens the photos of a confusion: by a click on a cell of the confusion matrix or on a line of the list of confusions,
// or by keyboard. Names come from the run: they only become text.
(function () {
  "use strict";
  const cells = JSON.parse(document.getElementById("photo-cells").textContent);
  const panel = document.getElementById("photos");
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  let opener = null;

  function add(parent, tag, text, kind) {
    const element = document.createElement(tag);
    if (text) element.textContent = text;
    if (kind) element.className = kind;
    parent.append(element);
    return element;
  }

  function close() {
    panel.hidden = true;
    panel.replaceChildren();
    if (opener && opener.isConnected) opener.focus();
  }

  function addPhoto(list, cell, photo) {
    const item = add(list, "div", "", "example");
    if (photo.picture) {
      const image = add(item, "img");
      image.alt = photo.id;
      image.src = photo.picture;
    }
    add(item, "b", cell.predicted, "wrong");
    item.append(" " + (100 * photo.probability).toFixed(1) + " %");
    add(item, "small", "true: " + cell.true);
    add(item, "small", photo.id + ", image " + photo.index);
  }

  function show(cell, from) {
    opener = from;
    panel.replaceChildren();
    add(panel, "h3", cell.true + " taken for " + cell.predicted);
    const missing = cell.confused.some((photo) => !photo.picture);
    add(panel, "p", cell.confused.length + " of " + cell.images + (cell.images === 1 ? " image" : " images") +
        ", with the probability of the predicted class, the most certain first." +
        (missing ? " Some have no picture here: the report holds a limited number of bytes of them." : ""));
    const list = add(panel, "div", "", "examples");
    for (const photo of cell.confused) addPhoto(list, cell, photo);
    const button = add(panel, "button", "Close");
    button.type = "button";
    button.addEventListener("click", close);
    panel.hidden = false;
    panel.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
  }

  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  for (const button of document.querySelectorAll("[data-photos]"))
    button.addEventListener("click", () => show(cells[Number(button.dataset.photos)], button));

  // The nearest of `marks` in the direction of an arrow key; undefined at the edge.
  function neighbour(marks, from, [dx, dy]) {
    const centre = (node) => {
      const box = node.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2];
    };
    const [x, y] = centre(from);
    let best, least = Infinity;
    for (const { node } of marks) {
      const [u, v] = centre(node);
      const along = (u - x) * dx + (v - y) * dy, across = Math.abs((u - x) * dy) + Math.abs((v - y) * dx);
      if (along > 1 && along + 4 * across < least) [best, least] = [node, along + 4 * across];
    }
    return best;
  }

  // Called by charts.js for each drawing of the matrix. One cell at a time is in the order of Tab.
  window.sparsightPhotos = function (holder, view) {
    const find = (item) => item && item.datum && cells.find(
        (cell) => cell.true === item.datum.true && cell.predicted === item.datum.predicted);
    const marks = [...holder.querySelectorAll(".mark-rect path")]
        .map((node) => ({ node, cell: find(node.__data__) })).filter((mark) => mark.cell);
    const node_of = (cell) => marks.find((mark) => mark.cell === cell).node;
    const reach = (node) => {
      for (const mark of marks) mark.node.setAttribute("tabindex", mark.node === node ? "0" : "-1");
    };
    for (const { node, cell } of marks) {
      node.classList.add("photo-cell");
      node.setAttribute("role", "button");
      node.setAttribute("aria-label", cell.true + " taken for " + cell.predicted + ": " + cell.images + " images");
      node.addEventListener("focus", () => reach(node));
      node.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") show(cell, node);
        else if (arrows[event.key]) (neighbour(marks, node, arrows[event.key]) || node).focus();
        else return;
        event.preventDefault();
      });
    }
    if (marks.length) reach(marks[0].node);
    view.addEventListener("click", (event, item) => {
      const cell = find(item);
      if (cell) show(cell, node_of(cell));
    });
  };
})();
