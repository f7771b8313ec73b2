"use strict";
// The C interface (runtime/include/sparsight/infer.h) as JavaScript calls it, on the compiled module of emscripten.
// There, a pointer and size_t have 4 bytes, and int64_t is a BigInt.

const ALL_FIELDS_OF_INFO = ["abi", "channels", "height", "width", "classes", "features", "decisions", "weightBytes",
  "runBytes", "independentClasses", "takesImages", "decodesImages"];
const INFO_BYTES = 104, RESULT_BYTES = 32, ROUTING_BYTES = 80;

// A frozen model and a session of it. Every method throws an Error with the library's one line.
class SparsightModel {
  // wasm: what loadSparsight() resolves to. bytes: Uint8Array of a .sparsight file.
  constructor(wasm, bytes) {
    this.wasm = wasm;
    this.model = this.session = 0;
    try {
      this.withMemory([bytes.length, 4], (file, handle) => {
        wasm.HEAPU8.set(bytes, file);
        this.check(wasm._sparsight_infer_open_memory(file, bytes.length, handle));
        this.model = this.view().getUint32(handle, true);
        this.check(wasm._sparsight_infer_open_session(this.model, handle));
        this.session = this.view().getUint32(handle, true);
      });
      this.info = this.withMemory([INFO_BYTES], (at) => {
        this.check(wasm._sparsight_infer_get_info(this.model, at, INFO_BYTES));
        const info = {};
        ALL_FIELDS_OF_INFO.forEach((name, i) => { info[name] = this.integer(at + 8 * i); });
        info.instructionSet = this.text(this.view().getUint32(at + 96, true));
        return info;
      });
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close() {
    if (this.session) this.wasm._sparsight_infer_close_session(this.session);
    if (this.model) this.wasm._sparsight_infer_close(this.model);
    this.model = this.session = 0;
  }

  className(number) { return this.text(this.wasm._sparsight_infer_class_name(this.model, BigInt(number))); }

  // rgb: rows of interleaved bytes. Returns the probability of each class and the milliseconds that the call took.
  classify(rgb, width, height) {
    const classes = this.info.classes;
    return this.withMemory([rgb.length, 4 * classes, RESULT_BYTES], (pixels, probabilities, result) => {
      this.wasm.HEAPU8.set(rgb, pixels);
      this.wasm.HEAPU8.fill(0, result, result + RESULT_BYTES);
      this.view().setUint32(result, RESULT_BYTES, true);
      this.view().setBigInt64(result + 8, 1n, true);
      this.view().setUint32(result + 20, probabilities, true);
      const begin = performance.now();
      const status = this.wasm._sparsight_infer_classify_image(this.session, pixels, BigInt(height), BigInt(width), 3n,
        BigInt(3 * width), result);
      const milliseconds = performance.now() - begin;
      this.check(status);
      return {probabilities: new Float32Array(this.memory(), probabilities, classes).slice(), milliseconds};
    });
  }

  // The decisions of the last picture: for each token of a layer the experts that computed it, with their gates.
  routings() {
    const all = [];
    for (let decision = 0; decision < this.info.decisions; ++decision) all.push(this.routing(decision));
    return all;
  }

  routing(decision) {
    return this.withMemory([ROUTING_BYTES], (at) => {
      this.check(this.wasm._sparsight_infer_get_routing(this.session, BigInt(decision), at, ROUTING_BYTES));
      const pointer = (offset) => this.view().getUint32(at + offset, true);
      const count = this.integer(at + 56), perImage = this.integer(at + 24);
      const token = new BigInt64Array(this.memory(), pointer(64), count);
      const expert = new BigInt64Array(this.memory(), pointer(68), count);
      const gate = new Float32Array(this.memory(), pointer(72), count);
      const kept = new Uint8Array(this.memory(), pointer(76), count);
      const chosen = Array.from({length: perImage}, () => []);
      for (let a = 0; a < count; ++a)
        if (kept[a]) chosen[Number(token[a])].push({expert: Number(expert[a]), gate: gate[a]});
      return {layer: this.text(pointer(0)), experts: this.integer(at + 8), prefix: this.integer(at + 32),
        grid: [this.integer(at + 40), this.integer(at + 48)], chosen};
    });
  }

  check(status) {
    if (status !== 0) throw new Error(this.text(this.wasm._sparsight_infer_last_error()));
  }

  // Calls body with the addresses of arrays of so many bytes, which end with it.
  withMemory(sizes, body) {
    const addresses = [];
    try {
      for (const size of sizes) {
        const address = this.wasm._malloc(Math.max(size, 8)) >>> 0;
        if (address === 0)
          throw new Error(`not enough memory for ${Math.ceil(size / 2 ** 20)} MB more; use a smaller file`);
        addresses.push(address);
      }
      return body(...addresses);
    } finally {
      for (const address of addresses) this.wasm._free(address);
    }
  }

  // Of the memory as it is now: it moves when it grows.
  memory() { return this.wasm.HEAPU8.buffer; }
  view() { return new DataView(this.memory()); }
  integer(address) { return Number(this.view().getBigInt64(address, true)); }
  text(address) {
    const bytes = this.wasm.HEAPU8;
    address >>>= 0;
    return address === 0 ? "" : new TextDecoder().decode(bytes.slice(address, bytes.indexOf(0, address)));
  }
}

// The steps by which a file makes pixels of a picture: its header has them (docs/file_formats.md).
function preparation(bytes) {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(16, true));
  return JSON.parse(new TextDecoder().decode(bytes.subarray(40, 40 + length))).program.preprocessing?.steps ?? [];
}

// What these steps leave of a picture, [left, top, width, height], to show it: the library prepares the pixels itself.
function visibleRegion(steps, info, width, height) {
  let region = [0, 0, width, height], size = [width, height], fits = true;
  const crop = (sides) => {
    fits = fits && sides.every((side, axis) => side <= size[axis] + 1);
    const kept = sides.map((side, axis) => region[2 + axis] * Math.min(1, side / size[axis]));
    region = [...kept.map((each, axis) => region[axis] + (region[2 + axis] - each) / 2), ...kept];
    size = sides;
  };
  const shorterSide = (side) => size.map((each) => each * side / Math.min(...size));
  for (const step of steps) {
    const side = step.height || Math.min(...size);
    if (step.kind === "center_crop") crop([side, side]);
    else size = step.width ? [step.width, step.height] : shorterSide(step.height);
  }
  const wanted = [info.width, info.height];
  if (fits && wanted.every((side, axis) => Math.abs(side - size[axis]) <= 1)) return region;
  region = [0, 0, width, height];
  const scale = Math.max(info.width / width, info.height / height);
  size = [width * scale, height * scale];
  crop(wanted);
  return region;
}

if (typeof module !== "undefined") module.exports = {SparsightModel, preparation, visibleRegion};
