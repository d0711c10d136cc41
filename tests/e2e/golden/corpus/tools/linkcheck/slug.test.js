import assert from "node:assert/strict";
import test from "node:test";
import { slugify, uniqueSlug } from "./slug.js";

test("punctuation goes, spaces become dashes", () => {
  assert.equal(slugify("What's new?  In 5.0"), "whats-new-in-50");
});

test("accents are folded", () => {
  assert.equal(slugify("Café à la carte"), "cafe-a-la-carte");
});

test("equal headings of one page get numbers", () => {
  const page = {};
  assert.deepEqual(
    ["Usage", "Usage", "Usage"].map((heading) => uniqueSlug(page, heading)),
    ["usage", "usage-1", "usage-2"],
  );
});
