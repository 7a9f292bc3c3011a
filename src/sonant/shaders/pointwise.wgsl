// pointwise: y[i] = chain(i), the step list on operands broadcast to y. An invocation holds one element.

struct Sizes {
  elements: u32,
  channels: u32,
  elements_per_batch: u32,
//#insert sizes
}

override workgroup_x: u32;

@group(0) @binding(0) var<uniform> sizes: Sizes;
//#insert declarations

@compute @workgroup_size(workgroup_x)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) lane: vec3<u32>) {
  let i = (group.y * groups.x + group.x) * workgroup_x + lane.x;
  if (i < sizes.elements) {
    y[i] = chain(i, i / sizes.elements_per_batch, i % sizes.channels);
  }
}
