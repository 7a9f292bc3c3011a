// Plays one Plan in Node on given files:
//   node play.mjs PLAN.json SHADER_FOLDER WEIGHTS.safetensors [INPUTS.safetensors OUTPUTS.safetensors]...

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";

import { create } from "webgpu";

import { Player, shaderFiles } from "./plan.mjs";
import { readSafetensors, writeSafetensors } from "./safetensors.mjs";

// Held for as long as the process lives: collecting it while a device exists crashes Dawn.
const gpu = create([]);

async function main([planFile, shaderFolder, weightsFile, ...runs]) {
  const plan = JSON.parse(await readFile(planFile, "utf8"));
  const shaders = new Map();
  for (const file of shaderFiles(plan)) shaders.set(file, await readFile(join(shaderFolder, file), "utf8"));
  const adapter = await gpu.requestAdapter();
  if (!adapter) throw new Error("no WebGPU adapter; is a Vulkan driver installed (VK_ICD_FILENAMES)?");
  const device = await adapter.requestDevice();
  const failures = [];
  device.addEventListener("uncapturederror", (event) => failures.push(event.error.message));
  const player = await Player.create(device, plan, shaders, readSafetensors(await readFile(weightsFile)));
  for (let at = 0; at < runs.length; at += 2) {
    const outputs = await player.run(readSafetensors(await readFile(runs[at])));
    if (failures.length) throw new Error(failures.join("\n"));
    await writeFile(runs[at + 1], writeSafetensors(outputs));
  }
  process.stdout.write(`${adapter.info.device || adapter.info.description}: ${runs.length / 2} runs\n`);
}

// Dawn keeps the process alive while a device exists.
main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  },
);
