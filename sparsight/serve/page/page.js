"use strict";
// The page of `sparsight serve`: sends a picture, shows its classes, tints its patches by the experts that computed them,
// and draws what the server counts.

const TOP_CLASSES = 5, LOAD_SECONDS = 2, LOAD_POINTS = 60;
let token = "", picture, routings = [], region, before;
const series = {requests: [], images: [], latency: [], waiting: []};

// What the server answers. Throws an Error with its one line, and shows the field for the token where one is needed.
async function ask(address, options = {}) {
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  let answer;
  try {
    answer = await fetch(address, {...options, headers, cache: "no-store"});
  } catch {
    throw new Error("the server does not answer; is it still running?");
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  if (answer.status === 401) element("token-form").hidden = false;
  try {
    throw new Error(JSON.parse(text).error);
  } catch (error) {
    throw error instanceof SyntaxError ? new Error(`the server answers ${answer.status}`) : error;
  }
}

// Without a token the server would refuse the question, which the browser's console calls an error: the page asks for
// one first where the server says that it needs one.
async function describeModel() {
  const health = await (await ask("v2/health/ready")).json();
  if (health.needs_token && !token) {
    element("token-form").hidden = false;
    show("status", "Type the token to begin.");
    return false;
  }
  const name = (await (await ask("v2")).json()).models[0];
  const {parameters, inputs} = await (await ask(`v2/models/${name}`)).json();
  const [, , height, width] = inputs[0].shape;
  show("status", `${name}: ${parameters.classes.length} classes, ${width} x ${height} pixels, ` +
    `${(parameters.weight_bytes / 1e6).toFixed(1)} MB of weights, ${parameters.layers.length} routers.`);
  element("token-form").hidden = true;
  return true;
}

// The picture as the browser shows it; nothing where it cannot, as for TIFF files, which the server reads all the same.
async function drawable(file) {
  try {
    return await createImageBitmap(file);
  } catch {
    return undefined;
  }
}

async function classify(file) {
  element("results").hidden = true;
  element("picture-name").textContent = file.name;
  const begin = performance.now();
  const query = new URLSearchParams({top: TOP_CLASSES, explain: true, name: file.name});
  const answer = await (await ask(`predict?${query}`, {method: "POST", body: file})).json();
  const milliseconds = performance.now() - begin;
  picture = await drawable(file);
  routings = Object.entries(answer.routing).map(([layer, routing]) => ({layer, ...routing}));
  region = answer.region;
  element("classes").replaceChildren(...answer.classes.map((entry) => {
    const row = document.createElement("tr");
    row.dataset.label = entry.label;
    row.dataset.probability = entry.probability;
    row.insertCell().textContent = entry.class;
    row.insertCell().textContent = `${(100 * entry.probability).toFixed(1)} %`;
    return row;
  }));
  show("time", `${milliseconds.toFixed(1)} ms from here to the server and back`);
  fillLayers();
  element("results").hidden = false;
  draw();
}

// The expert with the largest gate of each patch, -1 where none computed it.
function expertOfPatches(routing) {
  const first = routing.prefix_tokens;
  const patches = routing.chosen.slice(first, first + routing.grid[0] * routing.grid[1]);
  return patches.map((choices) =>
    choices.reduce((best, [expert, gate]) => (gate > best.gate ? {expert, gate} : best), {expert: -1, gate: -Infinity}).expert);
}

function draw() {
  const canvas = element("canvas"), context = canvas.getContext("2d");
  const [left, top, width, height] = region;
  canvas.width = CANVAS_SIDE;
  canvas.height = Math.max(1, Math.round(CANVAS_SIDE * height / width));
  context.imageSmoothingQuality = "high";
  if (picture) context.drawImage(picture, left, top, width, height, 0, 0, canvas.width, canvas.height);
  const routing = routings[element("layer").selectedIndex];
  const experts = routing ? expertOfPatches(routing) : [];
  canvas.dataset.experts = JSON.stringify(experts);
  canvas.setAttribute("aria-label", `The picture as the model sees it${routing ? `, tinted by expert of ${routing.layer}` : ""}`);
  if (experts.length > 0) tint(context, routing, experts);
  describe(routing, experts, picture ? "" : " The browser cannot show this kind of picture.");
}

// The lines of /metrics: {name: [{labels, value}, ...]}.
function parseMetrics(text) {
  const metrics = {};
  for (const line of text.split("\n")) {
    const found = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, key, value] of (found[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[key] = value;
    (metrics[found[1]] ??= []).push({labels, value: Number(found[3])});
  }
  return metrics;
}

function addToHistory(name, value) {
  series[name].push(value);
  if (series[name].length > LOAD_POINTS) series[name].shift();
}

function chart(title, values, unit) {
  const figure = document.createElement("figure"), caption = document.createElement("figcaption");
  const value = document.createElement("b"), last = values.at(-1) ?? 0, most = Math.max(...values, 1e-9);
  value.textContent = `${last.toFixed(last < 10 ? 1 : 0)} ${unit}`;
  caption.append(title, value);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${LOAD_POINTS - 1} 100`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${title}, the last two minutes: now ${value.textContent}, at most ${most.toFixed(1)}`);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const first = LOAD_POINTS - values.length;
  path.setAttribute("d", values.map((each, i) => `${i ? "L" : "M"}${first + i} ${97 - 94 * each / most}`).join("") + (values.length ? "h0" : ""));
  svg.append(path);
  figure.append(caption, svg);
  return figure;
}

function drawExpertLoad(entries) {
  const layers = new Map();
  for (const {labels, value} of entries) layers.set(labels.layer, [...(layers.get(labels.layer) ?? []), value]);
  element("experts-load-title").hidden = layers.size === 0;
  element("expert-load").replaceChildren(...Array.from(layers, ([layer, counts]) => {
    const row = document.createElement("div"), name = document.createElement("span"), bar = document.createElement("div");
    const total = counts.reduce((sum, each) => sum + each, 0);
    row.className = "layer";
    bar.className = "bar";
    name.textContent = layer;
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", counts.map((count, e) => `expert ${e}: ${(100 * count / (total || 1)).toFixed(1)} %`).join(", "));
    counts.forEach((count, e) => {
      const part = document.createElement("i");
      part.style.flexGrow = count;
      part.style.background = colour(e, counts.length);
      part.title = `expert ${e}: ${(100 * count / (total || 1)).toFixed(1)} %`;
      bar.append(part);
    });
    row.append(name, bar);
    return row;
  }));
}

async function drawLoad() {
  const metrics = parseMetrics(await (await ask("metrics")).text());
  const sum = (name) => (metrics[name] ?? []).reduce((total, each) => total + each.value, 0);
  // The page's own questions are no load.
  const asked = (metrics.sparsight_requests_total ?? []).filter(({labels}) => /predict|infer|explain/.test(labels.route));
  const now = {time: performance.now() / 1000, requests: asked.reduce((total, each) => total + each.value, 0),
    images: sum("sparsight_images_total"), batches: sum("sparsight_batch_images_count"),
    seconds: sum("sparsight_run_seconds_total")};
  if (before) {
    const seconds = now.time - before.time, batches = now.batches - before.batches;
    addToHistory("requests", (now.requests - before.requests) / seconds);
    addToHistory("images", batches > 0 ? (now.images - before.images) / batches : 0);
    addToHistory("latency", batches > 0 ? 1000 * (now.seconds - before.seconds) / batches : 0);
  }
  addToHistory("waiting", sum("sparsight_waiting_images"));
  before = now;
  element("charts").replaceChildren(chart("Requests", series.requests, "per s"), chart("Batch", series.images, "images"),
    chart("Time of a batch", series.latency, "ms"), chart("Queue", series.waiting, "images"));
  drawExpertLoad(metrics.sparsight_expert_assignments_total ?? []);
  element("load").hidden = false;
}

// One look after the other, while the page is seen; silent where the server is away.
async function followLoad() {
  for (;;) {
    if (!document.hidden) await drawLoad().catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 1000 * LOAD_SECONDS));
  }
}

let following = false;
async function begin() {
  if (!await describeModel() || following) return;
  following = true;
  followLoad();
}

function listen() {
  element("picture").addEventListener("click", () => { element("picture").value = ""; });  // else the same file is no change
  element("picture").addEventListener("change", () => {
    const file = element("picture").files[0];
    if (file) attempt(() => classify(file));
  });
  element("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    token = element("token").value;
    attempt(begin);
  });
  for (const id of ["layer", "strength"]) element(id).addEventListener("input", () => attempt(draw));
  addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    const file = event.dataTransfer.files[0];
    if (file) attempt(() => classify(file));
  });
}

listen();
attempt(begin);
