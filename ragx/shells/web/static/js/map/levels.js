/** Which of the three levels of detail a scale shows. */

const ramp = (low, high, value) => {
  const t = Math.min(1, Math.max(0, (value - low) / (high - low)));
  return t * t * (3 - 2 * t);
};

/**
 * Shares of the levels, from 0 to 1, which fade into each other.
 *
 * A small map fits the screen at a scale that would be near on a large one: its levels start later.
 * @param {number} scale CSS pixels per map unit
 * @param {number} fitScale at which the whole map fits
 * @returns {{far: number, mid: number, near: number, stretch: number}}
 */
export function levelsOf(scale, fitScale) {
  const stretch = Math.min(2.4, Math.max(1, fitScale / 1.15));
  const zoom = Math.log2(scale / stretch);
  const files = ramp(Math.log2(1.45), Math.log2(2.7), zoom);
  const near = ramp(Math.log2(4.4), Math.log2(7.4), zoom);
  return { far: 1 - files, mid: files * (1 - near), near, files, stretch };
}
