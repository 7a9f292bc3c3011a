// linear: y[m, n] = epilogue(sum_c prologue(x[m, c]) w[c, n]).
// An invocation holds TILE_ROWS rows of four neighbouring outputs, summed over c in order. No barrier, no workgroup memory.

struct Sizes {
  rows: u32,
  channels: u32,
  outputs: u32,
  rows_per_batch: u32,
//#insert sizes
}

override workgroup_x: u32;
override workgroup_y: u32;

@group(0) @binding(0) var<uniform> sizes: Sizes;
//#insert declarations

@compute @workgroup_size(workgroup_x, workgroup_y)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  let first_n = at.x * 4u;
  let first_m = at.y * TILE_ROWS;
  if (first_n >= sizes.outputs || first_m >= sizes.rows) {
    return;
  }
  let quads = (sizes.outputs + 3u) / 4u;
  var sums: array<vec4<f32>, TILE_ROWS>;
  for (var c = 0u; c < sizes.channels; c++) {
    let weights = w[c * quads + at.x];
    for (var r = 0u; r < TILE_ROWS; r++) {
      let m = min(first_m + r, sizes.rows - 1u);
      let i = m * sizes.channels + c;
      sums[r] += prologue(x[i], i, m / sizes.rows_per_batch, c) * weights;
    }
  }
  for (var r = 0u; r < TILE_ROWS; r++) {
    let m = first_m + r;
    for (var lane = 0u; lane < 4u; lane++) {
      let n = first_n + lane;
      if (m < sizes.rows && n < sizes.outputs) {
        let i = m * sizes.outputs + n;
        y[i] = epilogue(sums[r][lane], i, m / sizes.rows_per_batch, n);
      }
    }
  }
}
