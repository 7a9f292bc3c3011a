// Elementary functions of our own: the polynomials of native/simd/math.h, so that every backend and every driver gives
// the same numbers within a few ulps. The built-in sin, exp, log, tanh and atan2 may be off by 5e-4 or overflow.
// WGSL refuses infinities in constant expressions, so they are made from bits at run time.

// x - n * pi for |n| below about 2^16. Each product is exact, whether or not the compiler fuses it.
fn sonant_minus_pi_turns(x: f32, n: f32) -> f32 {
  return (((x - n * 3.140625) - n * 0.0009670257568359375) - n * 6.2771141529083251953e-07) - n * 1.2154201256553420762e-10;
}

// sin on [-pi/2, pi/2].
fn sonant_sin_poly(r: f32) -> f32 {
  let s = r * r;
  var p = 2.6083159809786593541503e-06 * s - 0.0001981069071916863322258;
  p = p * s + 0.00833307858556509017944336;
  p = p * s - 0.166666597127914428710938;
  return s * r * p + r;
}

fn sonant_flip_sign(x: f32, odd: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) ^ (bitcast<u32>(i32(odd)) << 31u));
}

// 2e-7 of the amplitude for |x| <= 1e4.
fn sonant_sin(x: f32) -> f32 {
  let n = round(x * 0.318309886183790672);
  return sonant_flip_sign(sonant_sin_poly(sonant_minus_pi_turns(x, n)), n);
}

fn sonant_cos(x: f32) -> f32 {
  let n = round(x * 0.318309886183790672 + 0.5);
  return sonant_flip_sign(sonant_sin_poly(sonant_minus_pi_turns(x, n - 0.5)), n);
}

// The half turn's sign falls away in the square.
fn sonant_snake(x: f32, alpha: f32) -> f32 {
  let angle = alpha * x;
  let s = sonant_sin_poly(sonant_minus_pi_turns(angle, round(angle * 0.318309886183790672)));
  return x + s * s / alpha;
}

fn sonant_power_of_two(n: i32) -> f32 {
  return bitcast<f32>(bitcast<u32>(n + 127) << 23u);
}

// Overflows to infinity above 88.72, to zero below -104.
fn sonant_exp(x: f32) -> f32 {
  let clamped = clamp(x, -104.0, 89.0);
  let n = round(clamped * 1.44269504088896341);
  let r = (clamped - n * 0.693359375) + n * 2.12194440054690583e-4;
  var p = 1.9875691500e-4 * r + 1.3981999507e-3;
  p = p * r + 8.3334519073e-3;
  p = p * r + 4.1665795894e-2;
  p = p * r + 1.6666665459e-1;
  p = p * r + 5.0000001201e-1;
  p = p * r * r + r + 1.0;
  // 2^n in two factors: n = 128 and the subnormals do not fit one exponent field.
  let whole = i32(n);
  let half = whole >> 1u;
  return p * sonant_power_of_two(half) * sonant_power_of_two(whole - half);
}

// 0 gives -inf, negative numbers NaN.
fn sonant_log(x: f32) -> f32 {
  let given = bitcast<u32>(x);
  let tiny = x < 1.17549435e-38;
  let b = bitcast<i32>(select(x, x * 8388608.0, tiny)) - 0x3F3504F3;  // mantissa in [sqrt(1/2), sqrt(2))
  let e = f32(b >> 23u) - select(0.0, 23.0, tiny);
  let m = bitcast<f32>((b & 0x007FFFFF) + 0x3F3504F3) - 1.0;
  var p = 7.0376836292e-2 * m - 1.1514610310e-1;
  p = p * m + 1.1676998740e-1;
  p = p * m - 1.2420140846e-1;
  p = p * m + 1.4249322787e-1;
  p = p * m - 1.6668057665e-1;
  p = p * m + 2.0000714765e-1;
  p = p * m - 2.4999993993e-1;
  p = p * m + 3.3333331174e-1;
  let square = m * m;
  let tail = (p * m * square - 0.5 * square) - e * 2.12194440e-4;
  var result = e * 0.693359375 + (m + tail);
  let magnitude = given & 0x7FFFFFFFu;
  if (magnitude >= 0x7F800000u) { result = x; }
  if (magnitude == 0u) { result = bitcast<f32>(magnitude | 0xFF800000u); }
  if (magnitude != 0u && given != magnitude) { result = bitcast<f32>(magnitude | 0x7FC00000u); }
  return result;
}

// 4e-7; a quotient of polynomials.
fn sonant_tanh(x: f32) -> f32 {
  let c = clamp(x, -7.90531110763549805, 7.90531110763549805);
  let s = c * c;
  var p = -2.76076847742355e-16 * s + 2.00018790482477e-13;
  p = p * s - 8.60467152213735e-11;
  p = p * s + 5.12229709037114e-08;
  p = p * s + 1.48572235717979e-05;
  p = p * s + 6.37261928875436e-04;
  p = p * s + 4.89352455891786e-03;
  var q = 1.19825839466702e-06 * s + 1.18534705686654e-04;
  q = q * s + 2.26843463243900e-03;
  q = q * s + 4.89352518554385e-03;
  return select(c * p / q, x, abs(x) < 0.0004);
}

// 5e-7; a quotient of polynomials on [-4, 4].
fn sonant_erf(x: f32) -> f32 {
  let c = clamp(x, -4.0, 4.0);
  let s = c * c;
  var p = -2.72614225801306e-10 * s + 2.77068142495902e-08;
  p = p * s - 2.10102402082508e-06;
  p = p * s - 5.69250639462346e-05;
  p = p * s - 7.34990630326855e-04;
  p = p * s - 2.95459980854025e-03;
  p = p * s - 1.60960333262415e-02;
  var q = -1.45660718464996e-05 * s - 2.13374055278905e-04;
  q = q * s - 1.68282697438203e-03;
  q = q * s - 7.37332916720468e-03;
  q = q * s - 1.42647390514189e-02;
  return c * p / q;
}

// Angle of the point (x, y); signed zeros and sonant_atan2(0, 0) = 0 included.
fn sonant_atan2(y: f32, x: f32) -> f32 {
  let ax = abs(x);
  let ay = abs(y);
  let steep = ay > ax;
  let larger = max(ax, ay);
  let t = select(min(ax, ay) / larger, 0.0, larger == 0.0);
  let s = t * t;
  var p = 0.00282363896258175373077393 * s - 0.0159569028764963150024414;
  p = p * s + 0.0425049886107444763183594;
  p = p * s - 0.0748900920152664184570312;
  p = p * s + 0.106347933411598205566406;
  p = p * s - 0.142027363181114196777344;
  p = p * s + 0.199926957488059997558594;
  p = p * s - 0.333331018686294555664062;
  var angle = p * s * t + t;
  angle = select(angle, 1.57079632679489662 - angle, steep);
  angle = select(angle, 3.14159265358979324 - angle, bitcast<u32>(x) >= 0x80000000u);
  return bitcast<f32>(bitcast<u32>(angle) | (bitcast<u32>(y) & 0x80000000u));
}

fn sonant_sigmoid(x: f32) -> f32 {
  return 1.0 / (1.0 + sonant_exp(-x));
}

fn sonant_gelu(x: f32) -> f32 {
  return 0.5 * x * (1.0 + sonant_erf(x * 0.70710678118654752));
}

fn sonant_gelu_tanh(x: f32) -> f32 {
  return 0.5 * x * (1.0 + sonant_tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
}

// The nearest bfloat16, ties to even.
fn sonant_to_bf16(x: f32) -> f32 {
  let b = bitcast<u32>(x);
  return bitcast<f32>((b + 0x7FFFu + ((b >> 16u) & 1u)) & 0xFFFF0000u);
}
