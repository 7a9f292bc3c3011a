// safetensors files with f32 and i32 tensors: u64 header length | JSON header | bytes.

const ARRAYS = { F32: Float32Array, I32: Int32Array };

/** name → { data, shape } of every tensor in `bytes` (a Uint8Array); tensors of other types are left out. */
export function readSafetensors(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 8) throw new Error("too short for a safetensors file");
  const headerBytes = Number(view.getBigUint64(0, true));
  if (headerBytes > bytes.length - 8) throw new Error("the safetensors header is longer than the file");
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + headerBytes)));
  const tensors = new Map();
  for (const [name, { dtype, shape, data_offsets: range }] of Object.entries(header)) {
    if (name === "__metadata__" || !Object.hasOwn(ARRAYS, dtype)) continue;
    const [begin, end] = range.map((offset) => 8 + headerBytes + offset);
    if (!(begin <= end && end <= bytes.length) || end - begin !== 4 * elements(shape)) {
      throw new Error(`tensor ${name} does not lie in the file`);
    }
    // Not bytes.slice: that of a Node Buffer gives a view of the whole file.
    tensors.set(name, { data: new ARRAYS[dtype](Uint8Array.prototype.slice.call(bytes, begin, end).buffer), shape });
  }
  return tensors;
}

/** The bytes of a file that holds `tensors`, a Map as `readSafetensors` gives. */
export function writeSafetensors(tensors) {
  const header = {};
  let end = 0;
  for (const [name, { data, shape }] of tensors) {
    const dtype = data instanceof Int32Array ? "I32" : "F32";
    header[name] = { dtype, shape, data_offsets: [end, (end += data.byteLength)] };
  }
  const text = JSON.stringify(header);
  const head = new TextEncoder().encode(text + " ".repeat((8 - (text.length % 8)) % 8));
  const bytes = new Uint8Array(8 + head.length + end);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(head.length), true);
  bytes.set(head, 8);
  let at = 8 + head.length;
  for (const { data } of tensors.values()) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return bytes;
}

export function elements(shape) {
  return shape.reduce((a, b) => a * b, 1);
}
