// Plays a Plan written by src/sonant/backends/webgpu on a GPUDevice, in a browser or in Node: evaluates dim expressions
// and dispatches. It knows no op and no family.

import { evaluate } from "./expressions.mjs";
import { pack } from "./packing.mjs";
import { elements } from "./safetensors.mjs";

const FORMAT = 1;
const OPSET = 3;
const UNIFORM_ALIGNMENT = 256;
const WORKSPACE = new Set(["arena", "input", "output"]);

// The values of GPUBufferUsage, GPUShaderStage and GPUMapMode, which Node has no globals for.
const USAGE = { MAP_READ: 1, COPY_SRC: 4, COPY_DST: 8, UNIFORM: 64, STORAGE: 128 };
const COMPUTE = 4;
const READ = 1;

/** The names of the shader files that a Plan needs. */
export function shaderFiles(plan) {
  const names = [...new Set(plan.kernels.flatMap((kernel) => kernel.files))];
  const odd = names.find((name) => !/^[a-z0-9_]+\.wgsl$/.test(name));
  if (odd !== undefined) throw new Error(`${odd} is not the name of a shader file`);
  return names;
}

/** A Plan with its pipelines compiled and its weights on the device. */
export class Player {
  /** shaders: file name → text. weights: name → { data, shape }. */
  static async create(device, plan, shaders, weights) {
    if (plan.format !== FORMAT || plan.opset !== OPSET) {
      throw new Error(`the Plan is of format ${plan.format}, opset ${plan.opset}; format ${FORMAT}, opset ${OPSET} wanted`);
    }
    const player = new Player(device, plan);
    player.pipelines = await Promise.all(plan.dispatches.map((dispatch) => player.#pipeline(dispatch, shaders)));
    player.#uploadWeights(weights);
    return player;
  }

  constructor(device, plan) {
    this.device = device;
    this.plan = plan;
    this.layouts = new Map();
    this.compiled = new Map();
    this.fixed = new Map();
  }

  /** inputs: name → { data, shape }; gives the outputs in the same form. */
  async run(inputs) {
    const { plan, device } = this;
    const sizes = bindSizes(plan, inputs);
    const buffers = this.#allocate(sizes);
    for (const { name, buffer } of plan.inputs) device.queue.writeBuffer(buffers.get(buffer), 0, inputs.get(name).data);
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    const uniforms = this.#uploadUniforms(sizes);
    for (const [at, dispatch] of plan.dispatches.entries()) {
      pass.setPipeline(this.pipelines[at]);
      pass.setBindGroup(0, this.#bindGroup(dispatch, buffers, uniforms[at]));
      pass.dispatchWorkgroups(...dispatch.workgroups.map((w) => evaluate(w, sizes)));
    }
    pass.end();
    device.queue.submit([encoder.finish()]);
    const outputs = new Map();
    for (const { name, dtype, shape, buffer } of plan.outputs) {
      outputs.set(name, await this.#read(buffers.get(buffer), dtype, shape.map((d) => evaluate(d, sizes))));
    }
    for (const [number, buffer] of buffers) if (!this.fixed.has(number)) buffer.destroy();
    return outputs;
  }

  #pipeline(dispatch, shaders) {
    if (!this.compiled.has(dispatch.kernel)) this.compiled.set(dispatch.kernel, this.#compile(dispatch, shaders));
    return this.compiled.get(dispatch.kernel);
  }

  async #compile(dispatch, shaders) {
    const { files, sections, overrides } = this.plan.kernels[dispatch.kernel];
    const joined = files.map((file) => shaders.get(file)).join("\n");
    const code = joined.replace(/^\/\/#insert (\w+)$/gm, (_, section) => sections[section].join("\n"));
    const module = this.device.createShaderModule({ code, label: dispatch.node });
    const { messages } = await module.getCompilationInfo();
    const errors = messages.filter((m) => m.type === "error").map((m) => `${m.lineNum}:${m.linePos} ${m.message}`);
    if (errors.length) throw new Error(`the kernel of ${dispatch.node} does not compile:\n${errors.join("\n")}`);
    const layout = this.device.createPipelineLayout({ bindGroupLayouts: [this.#layout(dispatch.bindings.length)] });
    return this.device.createComputePipelineAsync({ layout, compute: { module, entryPoint: "main", constants: overrides } });
  }

  /** Binding 0 uniform words, 1 the result, the others read. */
  #layout(count) {
    if (!this.layouts.has(count)) {
      const types = ["uniform", "storage", ...Array(count - 1).fill("read-only-storage")];
      const entries = types.map((type, binding) => ({ binding, visibility: COMPUTE, buffer: { type } }));
      this.layouts.set(count, this.device.createBindGroupLayout({ entries }));
    }
    return this.layouts.get(count);
  }

  #bindGroup(dispatch, buffers, uniforms) {
    const resources = [uniforms, ...dispatch.bindings.map((number) => ({ buffer: buffers.get(number) }))];
    const entries = resources.map((resource, binding) => ({ binding, resource }));
    return this.device.createBindGroup({ layout: this.#layout(dispatch.bindings.length), entries });
  }

  #uploadWeights(weights) {
    for (const { name, dtype, shape, pack: how, buffer } of this.plan.weights) {
      const found = weights.get(name);
      if (dtype !== "f32") throw new Error(`weight ${name} is ${dtype}; this player reads f32`);
      if (!found || found.shape.join() !== shape.join()) throw new Error(`weight ${name} [${shape}]: found [${found?.shape}]`);
      this.fixed.set(buffer, this.#upload(pack(found.data, shape, how), USAGE.STORAGE));
    }
    for (const { dtype, data, buffer } of this.plan.constants) {
      this.fixed.set(buffer, this.#upload(dtype === "i32" ? Int32Array.from(data) : Float32Array.from(data), USAGE.STORAGE));
    }
  }

  #upload(data, usage) {
    const buffer = this.#buffer(data.byteLength, usage | USAGE.COPY_DST);
    this.device.queue.writeBuffer(buffer, 0, data);
    return buffer;
  }

  #buffer(bytes, usage) {
    return this.device.createBuffer({ size: Math.max(bytes, 16), usage });
  }

  #allocate(sizes) {
    const buffers = new Map(this.fixed);
    for (const [number, { space, elements: tenants }] of this.plan.buffers.entries()) {
      if (!WORKSPACE.has(space)) continue;
      const count = Math.max(...tenants.map((e) => evaluate(e, sizes)));
      buffers.set(number, this.#buffer(4 * count, USAGE.STORAGE | USAGE.COPY_DST | USAGE.COPY_SRC));
    }
    return buffers;
  }

  /** All uniform words in one buffer; where each dispatch finds its own. */
  #uploadUniforms(sizes) {
    const words = this.plan.dispatches.map((d) => Uint32Array.from(d.uniforms, (u) => evaluate(u, sizes)));
    const starts = [];
    let end = 0;
    for (const w of words) {
      starts.push(end);
      end += Math.ceil(w.byteLength / UNIFORM_ALIGNMENT) * UNIFORM_ALIGNMENT;
    }
    const block = new Uint32Array(end / 4);
    words.forEach((w, at) => block.set(w, starts[at] / 4));
    const buffer = this.#upload(block, USAGE.UNIFORM);
    return words.map((w, at) => ({ buffer, offset: starts[at], size: w.byteLength }));
  }

  async #read(buffer, dtype, shape) {
    const bytes = 4 * elements(shape);
    const staging = this.#buffer(bytes, USAGE.MAP_READ | USAGE.COPY_DST);
    const encoder = this.device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, 0, staging, 0, bytes);
    this.device.queue.submit([encoder.finish()]);
    await staging.mapAsync(READ);
    const copy = staging.getMappedRange(0, bytes).slice(0);
    staging.destroy();
    return { data: dtype === "i32" ? new Int32Array(copy) : new Float32Array(copy), shape };
  }
}

function bindSizes(plan, inputs) {
  for (const { name, shape } of plan.inputs) {
    const given = inputs.get(name);
    if (given?.shape.length !== shape.length) throw new Error(`input ${name} [${shape}]: found [${given?.shape}]`);
  }
  const sizes = {};
  for (const { name, input, axis, value } of plan.symbols) {
    sizes[name] = evaluate(value, { size: inputs.get(input).shape[axis] });
  }
  for (const { name, shape } of plan.inputs) {
    const wanted = shape.map((dim) => evaluate(dim, sizes));
    if (wanted.join() !== inputs.get(name).shape.join()) {
      throw new Error(`input ${name} must be [${wanted}] here, got [${inputs.get(name).shape}]`);
    }
  }
  return sizes;
}
