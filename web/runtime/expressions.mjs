// Integer expressions in text, as a Plan holds them: + - * // (floor), unary minus, parentheses, names, integers.
// The same grammar is read by src/sonant/backends/webgpu/expressions.py. No eval: a page's policy may forbid it.

const TOKEN = /\s*(\/\/|[-+*()]|[A-Za-z_]\w*|\d+)/y;

/** The value of `expression` (a number, or text) for the sizes of its names. */
export function evaluate(expression, sizes) {
  if (typeof expression === "number") return expression;
  const tokens = tokenize(expression);
  let at = 0;

  function sum() {
    let value = product();
    while (tokens[at] === "+" || tokens[at] === "-") value = tokens[at++] === "+" ? value + product() : value - product();
    return value;
  }

  function product() {
    let value = unary();
    while (tokens[at] === "*" || tokens[at] === "//") {
      value = tokens[at++] === "*" ? value * unary() : Math.floor(value / unary());
    }
    return value;
  }

  function unary() {
    if (tokens[at] !== "-") return atom();
    at++;
    return -unary();
  }

  function atom() {
    const token = tokens[at++];
    if (token === "(") {
      const value = sum();
      if (tokens[at++] !== ")") throw new Error(`a Plan holds ${expression}: a parenthesis is open`);
      return value;
    }
    if (/^\d/.test(token ?? "")) return Number(token);
    if (!Object.hasOwn(sizes, token ?? "")) throw new Error(`a Plan holds ${expression}: no size for ${token}`);
    return sizes[token];
  }

  const value = sum();
  if (at !== tokens.length) throw new Error(`a Plan holds ${expression}, which is not an expression`);
  return value;
}

function tokenize(untrimmed) {
  const text = untrimmed.trimEnd();
  const tokens = [];
  TOKEN.lastIndex = 0;
  for (let end = 0; end < text.length; end = TOKEN.lastIndex) {
    TOKEN.lastIndex = end;
    const match = TOKEN.exec(text);
    if (!match) throw new Error(`a Plan holds ${text}, which is not an expression`);
    tokens.push(match[1]);
  }
  return tokens;
}
