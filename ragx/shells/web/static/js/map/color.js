/**
 * Colours of the map, computed in OKLCH so that equal numbers look equally light and strong.
 * A colour is `[r, g, b]`, each from 0 to 1 in sRGB, unless it is said to be `"#rrggbb"`.
 */

export const EDGE_KINDS = ["link", "mention", "import", "symbol", "adjacent", "similar"];

const GOLDEN_ANGLE = 137.50776405;
// Communities that lie near each other in hue differ in number by 5, 8, 13, ...: mostly not by a
// multiple of 3, so that they differ in lightness, which every kind of colour vision keeps.
const LIGHTNESS_STEPS = [0, -0.075, 0.06];

// [lightness, chroma, hue] by theme: found by search, so that any two are well apart to every kind of
// colour vision (0.08 or more in OKLab), and each has a contrast of 3 to the background.
const KINDS = {
  link: { light: [0.43, 0.182, 258], dark: [0.63, 0.168, 267] },
  mention: { light: [0.65, 0.147, 62], dark: [0.86, 0.145, 88] },
  import: { light: [0.44, 0.17, 357], dark: [0.7, 0.156, 359] },
  symbol: { light: [0.62, 0.123, 175], dark: [0.85, 0.125, 172] },
  adjacent: { light: [0.53, 0.01, 261], dark: [0.53, 0.01, 261] },
  similar: { light: [0.63, 0.115, 303], dark: [0.76, 0.105, 285] },
};
const NO_COMMUNITY = { light: [0.62, 0.01, 260], dark: [0.68, 0.01, 260] };

/**
 * sRGB of an OKLCH colour; chroma is lowered as far as the gamut needs.
 * @param {number} lightness 0 to 1
 * @param {number} chroma 0 to about 0.37
 * @param {number} hue degrees
 * @returns {number[]} [r, g, b], 0 to 1
 */
export function oklch(lightness, chroma, hue) {
  let rgb = linear(lightness, chroma, hue);
  if (!inGamut(rgb)) {
    let low = 0;
    let high = chroma;
    for (let step = 0; step < 16; step += 1) {
      const middle = (low + high) / 2;
      if (inGamut(linear(lightness, middle, hue))) low = middle;
      else high = middle;
    }
    rgb = linear(lightness, low, hue);
  }
  return rgb.map((value) => {
    const v = Math.min(1, Math.max(0, value));
    return v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055;
  });
}

function linear(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

function inGamut(rgb) {
  return rgb.every((value) => value >= -1e-4 && value <= 1.0001);
}

/** @param {number[]} rgb [r, g, b], 0 to 1 @returns {string} "#rrggbb" */
export function toHex(rgb) {
  return `#${rgb.map((v) => Math.round(v * 255).toString(16).padStart(2, "0")).join("")}`;
}

/**
 * Colour of a community as [r, g, b]; grey for a chunk that is in none (null or negative).
 * @param {number|null} id community_id
 * @param {boolean} dark
 */
export function communityRgb(id, dark) {
  if (!Number.isFinite(id) || id < 0) return oklch(...NO_COMMUNITY[dark ? "dark" : "light"]);
  const lightness = (dark ? 0.74 : 0.6) + LIGHTNESS_STEPS[id % 3];
  return oklch(lightness, dark ? 0.118 : 0.135, (250 + id * GOLDEN_ANGLE) % 360);
}

/** Colour of a community for the page's lists. @returns {string} "#rrggbb" */
export function communityColor(id, dark) {
  return toHex(communityRgb(id, dark));
}

/** Colour of a kind of edge as [r, g, b]; grey for an unknown kind. */
export function kindRgb(kind, dark) {
  return oklch(...(KINDS[kind] ?? NO_COMMUNITY)[dark ? "dark" : "light"]);
}

/** Colour of a kind of edge for the page's legend. @returns {string} "#rrggbb" */
export function kindColor(kind, dark) {
  return toHex(kindRgb(kind, dark));
}

const DEFAULTS = {
  light: { bg: [0.975, 0.973, 0.966], ink: [0.13, 0.14, 0.17], muted: [0.39, 0.4, 0.44], accent: [0.8, 0.28, 0.1] },
  dark: { bg: [0.075, 0.082, 0.1], ink: [0.92, 0.93, 0.95], muted: [0.62, 0.64, 0.69], accent: [1, 0.68, 0.36] },
};

/**
 * Theme of the map, from the custom properties of its host; what the host leaves out gets a default.
 * @param {HTMLElement} host
 * @param {boolean} dark
 * @returns {{dark: boolean, bg: number[], ink: number[], muted: number[], accent: number[], font: string}}
 */
export function readTheme(host, dark) {
  const probe = document.createElement("span");
  probe.style.display = "none";
  host.append(probe);
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const theme = { dark, font: getComputedStyle(host).fontFamily || "system-ui, sans-serif" };
  const given = getComputedStyle(host);
  for (const [name, otherwise] of Object.entries(DEFAULTS[dark ? "dark" : "light"])) {
    theme[name] = otherwise;
    if (!paint || !given.getPropertyValue(`--map-${name}`).trim()) continue;
    // The browser resolves every notation of colour: through `color`, then through one pixel.
    probe.style.color = `var(--map-${name})`;
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = getComputedStyle(probe).color;
    paint.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = paint.getImageData(0, 0, 1, 1).data;
    if (a > 0) theme[name] = [r / 255, g / 255, b / 255];
  }
  probe.remove();
  return theme;
}
