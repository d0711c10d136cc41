/**
 * Programs of the map. All lengths in shaders are device pixels, save where "map" is said. Output
 * is premultiplied. No program has attributes: a shape is some texels of a texture (`Shapes`), and
 * which shape and which corner of it a vertex is follows from `gl_VertexID`. Instances would do
 * the same, but renderers in software draw each instance as if it were a picture of its own.
 */

const HEAD = `#version 300 es
precision highp float;
precision highp int;
precision highp usampler2D;
precision highp sampler2D;
`;

export const ROW = 1024; // texels in a row of the textures of shapes

const PLACE = `ivec2 place(int texel) { return ivec2(texel % ${ROW}, texel / ${ROW}); }`;

/** Beginning of a vertex shader for shapes of so many texels and quads. */
const vertex = (texels, quads = 1) => `${HEAD}
uniform vec2 uCamera;   // map
uniform float uScale;   // device pixels per map unit
uniform vec2 uView;     // size of the canvas
uniform float uDpr;
uniform sampler2D uPalette;
uniform highp ${texels ? "sampler2D" : "usampler2D"} uShapes;
${PLACE}
const int PER = ${6 * quads};
int shape() { return gl_VertexID / PER; }
int quad() { return (gl_VertexID % PER) / 6; }
${texels ? `vec4 pull(int k) { return texelFetch(uShapes, place(shape() * ${texels} + k), 0); }` : ""}
ivec2 corner01() {
  int c = gl_VertexID % 6;
  c = c < 3 ? c : c - 2;  // 0 1 2, 1 2 3
  return ivec2(c & 1, c >> 1);
}
vec2 corner() { return vec2(corner01()) * 2.0 - 1.0; }
vec2 onScreen(vec2 p) { return (p - uCamera) * uScale; }
vec4 clip(vec2 px) { return vec4(px / uView * vec2(2.0, -2.0), 0.0, 1.0); }
vec3 paletteOf(int row) { return texelFetch(uPalette, ivec2(row & 255, row >> 8), 0).rgb; }
const vec4 NOWHERE = vec4(2.0, 2.0, 2.0, 1.0);
`;

/** Discs of communities and files: a fill that is denser to the rim, and the rim. */
export const DISC = {
  texels: 1,
  quads: 1,
  vertex: `${vertex(1)}
// 1 texel: x, y, radius (map); colour
uniform vec2 uAppear;   // radius at which it begins to show, and shows fully
uniform int uFocus;     // the disc that is pointed at, or -1
out vec2 vAt;
flat out float vRadius;
flat out float vShow;
flat out vec3 vColor;
flat out float vFocus;
void main() {
  vec4 disc = pull(0);
  vRadius = disc.z * uScale;
  vShow = smoothstep(uAppear.x, uAppear.y, vRadius);
  vec2 middle = onScreen(disc.xy);
  bool out_ = any(greaterThan(abs(middle) - vRadius, uView * 0.5 + 2.0));
  vAt = corner() * (vRadius + 2.0);
  vColor = paletteOf(int(disc.w));
  vFocus = shape() == uFocus ? 1.0 : 0.0;
  gl_Position = vShow <= 0.0 || out_ ? NOWHERE : clip(middle + vAt);
}`,
  fragment: `${HEAD}
in vec2 vAt;
flat in float vRadius;
flat in float vShow;
flat in vec3 vColor;
flat in float vFocus;
uniform vec4 uLook;     // alpha of the fill in the middle, at the rim; of the rim; its width
out vec4 color;
void main() {
  float d = length(vAt);
  float inside = clamp(vRadius - d + 0.5, 0.0, 1.0);
  if (inside <= 0.0) discard;
  float q = d / vRadius;
  float fill = mix(uLook.x, uLook.y, q * q * q) * (1.0 + 0.7 * vFocus);
  float width = uLook.w * (1.0 + vFocus);
  float rim = clamp(width * 0.5 + 0.5 - abs(d - vRadius + width * 0.5), 0.0, 1.0);
  float a = max(fill, rim * min(1.0, uLook.z * (1.0 + vFocus))) * inside * vShow;
  color = vec4(vColor * a, a);
}`,
};

/** Dots of chunks: never finer than a fine point; near by, a clear line round them. */
export const DOT = {
  texels: 1,
  quads: 1,
  vertex: `${vertex(1)}
// 1 texel: x, y, radius (map); colour
uniform float uLeast;   // least radius
uniform float uHalo;    // width of the line round a dot
out vec2 vAt;
flat out float vRadius;
flat out float vAlpha;
flat out vec3 vColor;
void main() {
  vec4 dot_ = pull(0);
  float r = dot_.z * uScale;
  vRadius = max(r, uLeast);
  vAlpha = min(1.0, 0.45 + 0.55 * r / uLeast);
  vColor = paletteOf(int(dot_.w));
  float reach = vRadius + uHalo + 1.0;
  vec2 middle = onScreen(dot_.xy);
  vAt = corner() * reach;
  gl_Position = any(greaterThan(abs(middle), uView * 0.5 + reach)) ? NOWHERE : clip(middle + vAt);
}`,
  fragment: `${HEAD}
in vec2 vAt;
flat in float vRadius;
flat in float vAlpha;
flat in vec3 vColor;
uniform float uHalo;
uniform float uAlpha;
uniform vec3 uBack;
out vec4 color;
void main() {
  float d = length(vAt);
  float dot_ = clamp(vRadius - d + 0.5, 0.0, 1.0);
  float halo = uHalo > 0.0 ? clamp(vRadius + uHalo - d + 0.5, 0.0, 1.0) * 0.85 : 0.0;
  float a = max(dot_, halo);
  if (a <= 0.0) discard;
  vec3 body = vColor * (1.0 - 0.16 * smoothstep(0.55, 1.0, d / vRadius) * step(4.0, vRadius));
  a *= vAlpha * uAlpha;
  color = vec4(mix(uBack, body, dot_) * a, a);
}`,
};

/**
 * Straight lines: edges between chunks, links between files. What is drawn is a list of (place in
 * the texture of ends, how): bits 0-7 strength; then bits 8-15 the kind, or 8-19 and 20-31 colours.
 */
export const LINE = {
  texels: 0,
  quads: 1,
  vertex: `${vertex(0)}
uniform sampler2D uEnds; // map: x, y of both ends
uniform vec3 uKinds[6];
uniform float uFaint[6];
uniform bool uByKind;
uniform vec2 uWidth;     // of the weakest and the strongest
uniform vec2 uStrength;  // alpha of the weakest and the strongest
uniform vec2 uLong;      // length from which lines fade, and to which
uniform float uLongAlpha;
out float vAcross;
flat out float vHalf;
out vec4 vColor;
void main() {
  uvec2 line = texelFetch(uShapes, place(shape()), 0).xy;
  vec4 ends = texelFetch(uEnds, place(int(line.x)), 0);
  vec2 a = onScreen(ends.xy), b = onScreen(ends.zw);
  float len = max(length(b - a), 0.001);
  vec2 dir = (b - a) / len;
  float s = float(line.y & 255u) / 255.0;
  float width = mix(uWidth.x, uWidth.y, s);
  float alpha = mix(uStrength.x, uStrength.y, s) * min(1.0, width);
  alpha *= mix(1.0, uLongAlpha, smoothstep(uLong.x, uLong.y, len));
  vHalf = max(width, 1.0) * 0.5;
  float t = float(corner01().x);
  vAcross = corner().y * (vHalf + 1.0);
  vec3 tint;
  if (uByKind) {
    uint kind = (line.y >> 8u) & 255u;
    tint = uKinds[kind];
    alpha *= uFaint[kind];
  } else {
    tint = paletteOf(int(t < 0.5 ? (line.y >> 8u) & 4095u : line.y >> 20u));
  }
  vColor = vec4(tint, alpha);
  gl_Position = clip(mix(a, b, t) + vec2(-dir.y, dir.x) * vAcross);
}`,
  fragment: `${HEAD}
in float vAcross;
flat in float vHalf;
in vec4 vColor;
uniform float uAlpha;
out vec4 color;
void main() {
  float a = clamp(vHalf - abs(vAcross) + 0.5, 0.0, 1.0) * vColor.a * uAlpha;
  color = vec4(vColor.rgb * a, a);
}`,
};

export const BENDS = 20; // pieces of a curve

/** Curves: links between communities; the ways that are lit, with glow and arrowheads. */
export const CURVE = {
  texels: 6,
  quads: BENDS,
  vertex: `${vertex(6, BENDS)}
// 6 texels: both ends (map); what is left out at the ends: map (2), CSS pixels (2); colour at the
// first end; at the other; width in CSS pixels, bend as a share of the length, length of the
// arrowhead in CSS pixels, 0; the sets that it joins, 0, 0
uniform float uGlow;    // reach of the glow
uniform float uFocus;   // set whose links stand out, or -1
out float vAcross;
out float vAlong;
flat out float vLen;
flat out vec2 vShape;   // half width, arrowhead
out vec4 vColor;
void main() {
  vec4 ends = pull(0), trims = pull(1), look = pull(4);
  vec2 a = onScreen(ends.xy), b = onScreen(ends.zw);
  float len = max(length(b - a), 0.001);
  vec2 dir = (b - a) / len;
  vec2 mid = (a + b) * 0.5 + vec2(-dir.y, dir.x) * look.y * len;
  vec2 trim = trims.xy * uScale + trims.zw * uDpr;
  trim *= min(1.0, 0.6 * len / max(trim.x + trim.y, 0.001));
  a += normalize(mid - a) * trim.x;
  b += normalize(mid - b) * trim.y;
  vLen = length(b - a) * (1.0 + look.y * look.y);
  float head = min(look.z * uDpr, vLen * 0.7);
  vShape = vec2(look.x * uDpr * 0.5, head);
  float t = float(quad() + corner01().x) / ${BENDS}.0;
  float side = corner().y;
  vec2 at = mix(mix(a, mid, t), mix(mid, b, t), t);
  vec2 tangent = normalize(mix(mid - a, b - mid, t));
  vAlong = t * vLen;
  vAcross = side * (max(vShape.x, head * 0.5) + uGlow + 1.0);
  vColor = mix(pull(2), pull(3), t);
  if (uFocus >= 0.0) vColor.a *= any(equal(pull(5).xy, vec2(uFocus))) ? 1.7 : 0.3;
  gl_Position = clip(at + vec2(-tangent.y, tangent.x) * vAcross);
}`,
  fragment: `${HEAD}
in float vAcross;
in float vAlong;
flat in float vLen;
flat in vec2 vShape;
in vec4 vColor;
uniform float uGlow;
uniform float uAlpha;
uniform float uSoft;    // 1: both ends fade out
uniform vec2 uFlow;     // strength and phase of what moves along
uniform float uDpr;
out vec4 color;
void main() {
  float left = vLen - vAlong;
  float core = vShape.x;
  if (vShape.y > 0.0 && left < vShape.y) core = 0.52 * left;
  float d = abs(vAcross) - core;
  float a = clamp(0.5 - d, 0.0, 1.0) * min(1.0, vShape.x * 2.0);
  if (uGlow > 0.0) a = max(a, 0.42 * exp(-3.5 * pow(max(d, 0.0) / uGlow, 1.5)) * step(d, uGlow));
  vec3 tint = vColor.rgb;
  if (uFlow.x > 0.0 && d < 0.5) {
    float wave = fract(vAlong / (44.0 * uDpr) - uFlow.y);
    tint = mix(tint, vec3(1.0), uFlow.x * 0.75 * smoothstep(0.6, 0.95, wave) * (1.0 - smoothstep(0.95, 1.0, wave)));
  }
  a *= mix(1.0, smoothstep(0.0, 0.3, min(vAlong, left) / vLen), uSoft);
  a *= min(1.0, vColor.a) * uAlpha;
  color = vec4(tint * a, a);
}`,
};

/** Rings round what is found, selected or pointed at. */
export const RING = {
  texels: 3,
  quads: 1,
  vertex: `${vertex(3)}
// 3 texels: x, y, radius (map), 0; least radius, distance from the disc, width (CSS pixels), 0; colour
out vec2 vAt;
flat out vec2 vRing;
flat out vec4 vTint;
void main() {
  vec4 disc = pull(0), ring = pull(1);
  vRing = vec2(max(disc.z * uScale + ring.y * uDpr, ring.x * uDpr), ring.z * uDpr);
  vAt = corner() * (vRing.x + vRing.y + 2.0);
  vTint = pull(2);
  gl_Position = clip(onScreen(disc.xy) + vAt);
}`,
  fragment: `${HEAD}
in vec2 vAt;
flat in vec2 vRing;
flat in vec4 vTint;
uniform vec3 uBack;
uniform float uDpr;
out vec4 color;
void main() {
  float off = abs(length(vAt) - vRing.x);
  float ring = clamp(vRing.y * 0.5 - off + 0.5, 0.0, 1.0);
  float gap = clamp(vRing.y * 0.5 + uDpr - off + 0.5, 0.0, 1.0) * 0.6;
  float a = max(ring, gap) * vTint.a;
  if (a <= 0.0) discard;
  color = vec4(mix(uBack, vTint.rgb, ring) * a, a);
}`,
};
