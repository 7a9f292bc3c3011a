// The declared packing steps: from a canonical tensor to the words a WGSL kernel reads; as backends/webgpu/packing.py.

const STEPS = { plain, kcn4 };

/** The packed words of `data`, a Float32Array of the canonical `shape`. */
export function pack(data, shape, how) {
  if (!Object.hasOwn(STEPS, how)) throw new Error(`no packing step ${how}`);
  return STEPS[how](data, shape);
}

function plain(data) {
  return data;
}

/** [N, C] or [N, K, C/groups] → [K, C/groups, N padded with zeros to a multiple of 4]. */
function kcn4(data, shape) {
  const outputs = shape[0];
  const inner = data.length / outputs; // K * C/groups
  const padded = Math.ceil(outputs / 4) * 4;
  const packed = new Float32Array(inner * padded);
  for (let n = 0; n < outputs; n++) {
    for (let i = 0; i < inner; i++) packed[i * padded + n] = data[n * inner + i];
  }
  return packed;
}
