/** A graph document with what the page looks up in it. */

import { counted } from "./words.js";

export class Corpus {
  #at = null;
  #files = null;
  #links = null;

  /** @param {object} doc ragx.graph.v1 */
  constructor(doc) {
    this.doc = doc;
    this.meta = doc.meta;
    this.communities = doc.communities;
    this.topics = new Map(doc.communities.map((one) => [one.community_id, one]));
  }

  /** The node of a chunk, or undefined where it is not on the map. */
  node(id) {
    this.#at ??= new Map(this.doc.nodes.map((node) => [node.id, node]));
    return this.#at.get(id);
  }

  /** Nodes by file, in order. @returns {Map<string, object[]>} */
  get files() {
    if (!this.#files) {
      this.#files = new Map();
      for (const node of this.doc.nodes) {
        const list = this.#files.get(node.file);
        if (list) list.push(node);
        else this.#files.set(node.file, [node]);
      }
    }
    return this.#files;
  }

  /** Whether the index holds more than the map. */
  get capped() {
    return this.meta.shown_nodes < this.meta.nodes;
  }

  /** How much of it the map shows, in words. */
  get shown() {
    return `${this.meta.shown_nodes.toLocaleString("en")} of ${counted(this.meta.nodes, "chunk")}`;
  }

  /** Communities joined to one, strongest first: [{topic, strength}]; strength sums edge weights. */
  linked(number) {
    this.#links ??= this.#sum();
    return [...(this.#links.get(number) ?? [])]
      .map(([other, strength]) => ({ topic: this.topics.get(other), strength }))
      .filter(({ topic }) => topic)
      .sort((one, other) => other.strength - one.strength || one.topic.community_id - other.topic.community_id);
  }

  #sum() {
    const links = new Map();
    const put = (from, to, weight) => {
      if (!links.has(from)) links.set(from, new Map());
      const row = links.get(from);
      row.set(to, (row.get(to) ?? 0) + weight);
    };
    for (const [source, target, weight] of this.doc.edges) {
      const one = this.node(source)?.community ?? null;
      const other = this.node(target)?.community ?? null;
      if (one === null || other === null || one === other) continue;
      put(one, other, weight);
      put(other, one, weight);
    }
    return links;
  }

  /** What groups of chunks are called here. */
  get grouped() {
    const word = this.meta.grouping === "directory" ? "directory" : "topic";
    return { one: word, many: word === "topic" ? "topics" : "directories" };
  }
}
