// conv1d, groups > 1 (depthwise included): as conv1d.wgsl, output n reading only the channels of its own group.
// An invocation holds one output. w is [k, c of the group, n], n padded to a multiple of four.

struct Sizes {
  rows: u32,
  channels: u32,
  outputs: u32,
  output_rows: u32,
  taps: u32,
  stride: u32,
  dilation: u32,
  pad_left: u32,
  group_channels: u32,
  group_outputs: u32,
//#insert sizes
}

override workgroup_x: u32;
override workgroup_y: u32;

@group(0) @binding(0) var<uniform> sizes: Sizes;
//#insert declarations

@compute @workgroup_size(workgroup_x, workgroup_y)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  let n = at.x;
  let t = at.y;
  let b = at.z;
  if (n >= sizes.outputs || t >= sizes.output_rows) {
    return;
  }
  let padded_outputs = (sizes.outputs + 3u) / 4u * 4u;
  let first_c = n / sizes.group_outputs * sizes.group_channels;
  var sum = 0.0;
  for (var k = 0u; k < sizes.taps; k++) {
    let s = i32(t * sizes.stride + k * sizes.dilation) - i32(sizes.pad_left);
    if (s >= 0 && s < i32(sizes.rows)) {
      for (var g = 0u; g < sizes.group_channels; g++) {
        let c = first_c + g;
        let i = (b * sizes.rows + u32(s)) * sizes.channels + c;
        sum += prologue(x[i], i, b, c) * w[(k * sizes.group_channels + g) * padded_outputs + n];
      }
    }
  }
  let i = (b * sizes.output_rows + t) * sizes.outputs + n;
  y[i] = epilogue(sum, i, b, n);
}
