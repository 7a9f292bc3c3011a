// conv1d, groups = 1: y[b, t, n] = epilogue(sum_kc prologue(x[b, t*stride + k*dilation - pad_left, c]) w[k, c, n]).
// What lies outside x counts as zero after the prologue. An invocation holds TILE_ROWS times of four neighbouring outputs,
// summed over k, then c, in order. No barrier, no workgroup memory.

struct Sizes {
  rows: u32,
  channels: u32,
  outputs: u32,
  output_rows: u32,
  taps: u32,
  stride: u32,
  dilation: u32,
  pad_left: u32,
//#insert sizes
}

override workgroup_x: u32;
override workgroup_y: u32;

@group(0) @binding(0) var<uniform> sizes: Sizes;
//#insert declarations

@compute @workgroup_size(workgroup_x, workgroup_y)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  let first_n = at.x * 4u;
  let first_t = at.y * TILE_ROWS;
  let b = at.z;
  if (first_n >= sizes.outputs || first_t >= sizes.output_rows) {
    return;
  }
  let quads = (sizes.outputs + 3u) / 4u;
  var sums: array<vec4<f32>, TILE_ROWS>;
  for (var k = 0u; k < sizes.taps; k++) {
    let first_s = i32(first_t * sizes.stride + k * sizes.dilation) - i32(sizes.pad_left);
    for (var c = 0u; c < sizes.channels; c++) {
      let weights = w[(k * sizes.channels + c) * quads + at.x];
      for (var r = 0u; r < TILE_ROWS; r++) {
        let s = first_s + i32(r * sizes.stride);
        if (s >= 0 && s < i32(sizes.rows)) {
          let i = (b * sizes.rows + u32(s)) * sizes.channels + c;
          sums[r] += prologue(x[i], i, b, c) * weights;
        }
      }
    }
  }
  for (var r = 0u; r < TILE_ROWS; r++) {
    let t = first_t + r;
    for (var lane = 0u; lane < 4u; lane++) {
      let n = first_n + lane;
      if (t < sizes.output_rows && n < sizes.outputs) {
        let i = (b * sizes.output_rows + t) * sizes.outputs + n;
        y[i] = epilogue(sums[r][lane], i, b, n);
      }
    }
  }
}
