"use strict";
// The page: opens a frozen model, classifies a picture, and tints its patches by the experts that computed them.

const TOP_CLASSES = 5, MAX_PICTURE_PIXELS = 2 ** 26;
let wasm, model, steps, picture, routings;

async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function openModel(file) {
  show("status", `Reading ${file.name} ...`);
  element("results").hidden = true;
  try {
    model?.close();
    model = undefined;
    const bytes = new Uint8Array(await file.arrayBuffer());
    model = new SparsightModel(wasm, bytes);
    steps = preparation(bytes);
  } finally {
    show("status", model ? "" : "Choose a model.");
    element("model-name").textContent = model ? file.name : "Choose or drop a .sparsight file";
  }
  if (picture) classify();
  else describeModel();
}

function describeModel() {
  const {classes, height, width, weightBytes, decisions} = model.info;
  show("status", `${classes} classes, ${width} x ${height} pixels, ${(weightBytes / 1e6).toFixed(1)} MB of weights, ` +
    `${decisions} routers. ${picture ? "" : "Choose a picture."}`);
}

// The picture as the browser decodes it: upright, in the numbers of its file.
async function openPicture(file) {
  element("results").hidden = true;
  picture = undefined;
  element("picture-name").textContent = "Choose or drop a picture";
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, {colorSpaceConversion: "none"});
  } catch {
    throw new Error(`${file.name}: the browser cannot decode this picture; choose a PNG, JPEG, WebP or GIF file`);
  }
  const {width, height} = bitmap;
  if (width * height > MAX_PICTURE_PIXELS)
    throw new Error(`${file.name}: it has ${width} x ${height} pixels, ${MAX_PICTURE_PIXELS} are allowed; scale it down`);
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", {willReadFrequently: true});
  context.drawImage(bitmap, 0, 0);
  const rgba = context.getImageData(0, 0, width, height).data;
  const rgb = new Uint8Array(3 * width * height);
  for (let from = 0, to = 0; to < rgb.length; from += 4, to += 3) {
    rgb[to] = rgba[from];
    rgb[to + 1] = rgba[from + 1];
    rgb[to + 2] = rgba[from + 2];
  }
  picture = {canvas, rgb, width, height};
  element("picture-name").textContent = file.name;
  if (model) classify();
  else show("status", "Choose a model.");
}

function classify() {
  describeModel();
  const {probabilities, milliseconds} = model.classify(picture.rgb, picture.width, picture.height);
  routings = model.routings();
  const order = Array.from(probabilities.keys()).sort((a, b) => probabilities[b] - probabilities[a] || a - b);
  element("classes").replaceChildren(...order.slice(0, TOP_CLASSES).map((label) => {
    const row = document.createElement("tr");
    row.dataset.label = label;
    row.dataset.probability = probabilities[label];
    row.insertCell().textContent = model.className(label);
    row.insertCell().textContent = `${(100 * probabilities[label]).toFixed(1)} %`;
    return row;
  }));
  show("time", `${milliseconds.toFixed(1)} ms, with resizing, on one thread (${model.info.instructionSet})`);
  element("time").dataset.milliseconds = milliseconds;
  fillLayers();
  element("results").hidden = false;
  draw();
}

// The expert with the largest gate of each patch, -1 where none computed it.
function expertOfPatches(routing) {
  const patches = routing.chosen.slice(routing.prefix, routing.prefix + routing.grid[0] * routing.grid[1]);
  return patches.map((choices) =>
    choices.reduce((best, each) => (each.gate > best.gate ? each : best), {expert: -1, gate: -Infinity}).expert);
}

function draw() {
  const canvas = element("canvas"), context = canvas.getContext("2d");
  const [left, top, width, height] = visibleRegion(steps, model.info, picture.width, picture.height);
  canvas.width = CANVAS_SIDE;
  canvas.height = Math.max(1, Math.round(CANVAS_SIDE * height / width));
  context.imageSmoothingQuality = "high";
  context.drawImage(picture.canvas, left, top, width, height, 0, 0, canvas.width, canvas.height);
  const routing = routings[element("layer").selectedIndex];
  const experts = routing ? expertOfPatches(routing) : [];
  canvas.dataset.experts = JSON.stringify(experts);
  canvas.setAttribute("aria-label", `The picture as the model sees it${routing ? `, tinted by expert of ${routing.layer}` : ""}`);
  if (experts.length > 0) tint(context, routing, experts);
  describe(routing, experts);
}

async function isModel(file) {
  if (/\.sparsight$/i.test(file.name)) return true;
  const start = new Uint8Array(await file.slice(0, 7).arrayBuffer());
  return String.fromCharCode(...start) === "\u0089SPARSE";
}

// What is dropped anywhere: models first, so that a picture beside one is classified by it.
async function dropped(files) {
  const kinds = await Promise.all(files.map(isModel));
  for (const wanted of [true, false])
    for (const [i, file] of files.entries()) if (kinds[i] === wanted) await (wanted ? openModel(file) : openPicture(file));
}

function listen() {
  const chosen = (id, open) => {
    element(id).addEventListener("click", () => { element(id).value = ""; });  // else the same file is no change
    element(id).addEventListener("change", () => {
      const file = element(id).files[0];
      if (file) attempt(() => open(file));
    });
  };
  chosen("model", openModel);
  chosen("picture", openPicture);
  for (const id of ["layer", "strength"]) element(id).addEventListener("input", () => attempt(draw));
  addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    attempt(() => dropped(Array.from(event.dataTransfer.files)));
  });
}

attempt(async () => {
  for (const id of ["model", "picture"]) element(id).disabled = true;
  wasm = await loadSparsight({wasmBinary: await unpacked(SPARSIGHT_WASM)});
  for (const id of ["model", "picture"]) element(id).disabled = false;
  listen();
  show("status", "Choose a model and a picture.");
}).then(() => { if (!wasm) show("status", ""); });
