// Anchors of headings as the wiki's renderer makes them.

const seen = new WeakMap();

/** Turn a heading into its anchor: lower case, dashes for spaces, no punctuation. */
export function slugify(heading) {
  return heading
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replace(/\s+/g, "-");
}

/** The anchor of a heading within one page; a second equal heading gets -1, a third -2. */
export function uniqueSlug(page, heading) {
  const counts = seen.get(page) ?? new Map();
  seen.set(page, counts);
  const base = slugify(heading);
  const n = counts.get(base) ?? 0;
  counts.set(base, n + 1);
  return n === 0 ? base : `${base}-${n}`;
}
