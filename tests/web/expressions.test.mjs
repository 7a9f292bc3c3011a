import assert from "node:assert/strict";
import test from "node:test";

import { evaluate } from "../../web/runtime/expressions.mjs";
import { pack } from "../../web/runtime/packing.mjs";
import { readSafetensors, writeSafetensors } from "../../web/runtime/safetensors.mjs";

test("expressions follow Python's precedence and floor division", () => {
  const sizes = { T: 7, B: 2 };
  const cases = [[5, 5], ["T", 7], ["2*T-1", 13], ["(T+1)//2", 4], ["-T//2", -4], ["-(T-9)//2", 1], ["T-2-1", 4],
    ["T//2*B", 6], ["7*((T+1)//2)*B", 56], ["((T+3)//4+B-1)//(B)", 1], ["1-T//2", -2], [" T + B ", 9]];
  for (const [text, value] of cases) assert.equal(evaluate(text, sizes), value, String(text));
});

test("what is not an expression is refused", () => {
  for (const text of ["T/2", "T.x", "f(T)", "(T", "T)", "", "2 3", "N", "T**2", "constructor"]) {
    assert.throws(() => evaluate(text, { T: 1 }), /a Plan holds/, text);
  }
});

test("kcn4 puts four neighbouring outputs side by side", () => {
  assert.deepEqual([...pack(Float32Array.of(1, 2, 3, 4, 5, 6), [3, 2], "kcn4")], [1, 3, 5, 0, 2, 4, 6, 0]);
  assert.throws(() => pack(new Float32Array(1), [1], "toString"), /no packing step/);
});

test("safetensors come back as they were written, and a short file is refused", () => {
  const tensors = new Map([["a", { data: Float32Array.of(1.5, -2), shape: [2, 1] }], ["b", { data: Int32Array.of(7), shape: [1] }]]);
  const bytes = writeSafetensors(tensors);
  assert.deepEqual(readSafetensors(bytes), tensors);
  assert.deepEqual(readSafetensors(Buffer.from(bytes)), tensors);
  assert.throws(() => readSafetensors(bytes.subarray(0, bytes.length - 1)), /does not lie in the file/);
});
