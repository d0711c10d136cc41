/** Draws a graph: owns everything that lives in the GL context, and can build it anew. */

import { EDGE_KINDS, communityRgb, kindRgb } from "./color.js";
import { Shapes, buildProgram, dataTexture, openContext } from "./gl.js";
import { CURVE, DISC, DOT, LINE, RING } from "./shaders.js";

const LINKS_DRAWN = 300; // between communities
const LINKS_AT_LEAST = 24;
const FAINT = EDGE_KINDS.map((kind) => ({ similar: 0.55, adjacent: 0.7 })[kind] ?? 1);

export class Renderer {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.gl = openContext(canvas);
    this.software = /swiftshader|llvmpipe|software|basic render/iu.test(rendererName(this.gl));
    this.#compile();
  }

  #compile() {
    const { gl } = this;
    this.programs = {};
    for (const [name, source] of Object.entries({ DISC, DOT, LINE, CURVE, RING })) {
      this.programs[name] = buildProgram(gl, source);
    }
    this.items = {
      communities: new Shapes(gl, DISC),
      files: new Shapes(gl, DISC),
      dots: new Shapes(gl, DOT),
      lit: new Shapes(gl, DOT),
      edges: new Shapes(gl, LINE),
      fileLinks: new Shapes(gl, LINE),
      strong: new Shapes(gl, LINE),
      links: new Shapes(gl, CURVE),
      ways: new Shapes(gl, CURVE),
      rings: new Shapes(gl, RING),
    };
    this.textures = {};
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  /** After a lost context came back: everything is built again. */
  restore(graph, links, theme) {
    this.#compile();
    this.setGraph(graph);
    this.setTheme(graph, links, theme);
  }

  /** Builds the buffers of a graph (of `readGraph`); links and colours follow by `setTheme`. */
  setGraph(graph) {
    const { gl, items } = this;
    items.dots.fill(interleave(graph.x, graph.y, graph.size, graph.color));
    for (const [name, level] of [["communities", graph.communities], ["files", graph.groups]]) {
      // A chunk by itself is its own disc.
      const radius = level.radius.map((r, k) => (name === "communities" && level.size[k] === 1 ? 0 : r));
      items[name].fill(interleave(level.x, level.y, radius, level.color));
    }
    for (const name of ["edges", "fileLinks", "strong"]) items[name].fill(new Uint32Array(0));

    const ends = new Float32Array(4 * graph.m);
    for (let e = 0; e < graph.m; e += 1) {
      const a = graph.source[e];
      const b = graph.target[e];
      ends[4 * e] = graph.x[a];
      ends[4 * e + 1] = graph.y[a];
      ends[4 * e + 2] = graph.x[b];
      ends[4 * e + 3] = graph.y[b];
    }
    gl.deleteTexture(this.textures.ends ?? null);
    this.textures.ends = dataTexture(gl, ends);
  }

  /** Ends of the links between files (see `sumLinks`), for the lists of `setLines`. */
  setFileLinks(graph, links) {
    const { gl } = this;
    const { x, y } = graph.groups;
    const ends = new Float32Array(4 * links.count);
    for (let k = 0; k < links.count; k += 1) {
      ends.set([x[links.a[k]], y[links.a[k]], x[links.b[k]], y[links.b[k]]], 4 * k);
    }
    gl.deleteTexture(this.textures.files ?? null);
    this.textures.files = dataTexture(gl, ends);
  }

  /** Colours, and the links between communities, which carry theirs. */
  setTheme(graph, links, theme) {
    const { gl } = this;
    this.theme = theme;
    const colors = graph.communities.items.map((one) => communityRgb(one.community_id, theme.dark));
    colors.push(communityRgb(null, theme.dark));
    const bytes = new Uint8Array(4 * colors.length);
    colors.forEach((rgb, row) => bytes.set([...rgb.map((v) => Math.round(v * 255)), 255], 4 * row));
    gl.deleteTexture(this.textures.palette ?? null);
    this.textures.palette = dataTexture(gl, bytes, 256);
    this.kinds = Float32Array.from(EDGE_KINDS.flatMap((kind) => kindRgb(kind, theme.dark)));
    this.setLinks(graph, links);
  }

  /** Links between communities (see `sumLinks`): the strongest, some for each, the strongest on top. */
  setLinks(graph, links) {
    const { x, y, radius, items, size } = graph.communities;
    const { dark } = this.theme;
    const curves = [];
    const most = links.weight[0] || 1;
    // Where everything is joined to everything, all links together would show nothing.
    const drawn = Math.min(links.count, LINKS_DRAWN, Math.max(LINKS_AT_LEAST, 1.5 * x.length));
    for (let k = Math.floor(drawn) - 1; k >= 0; k -= 1) {
      const a = links.a[k];
      const b = links.b[k];
      const s = Math.sqrt(links.weight[k] / most);
      const alpha = (dark ? 0.16 : 0.2) + 0.42 * s;
      curves.push({
        ends: [x[a], y[a], x[b], y[b]],
        // They come out of the discs softly, for discs that touch leave no room between rims.
        trim: [size[a] === 1 ? 1 : 0.55 * radius[a], size[b] === 1 ? 1 : 0.55 * radius[b], 0, 0],
        from: [...communityRgb(items[a].community_id, dark), alpha],
        to: [...communityRgb(items[b].community_id, dark), alpha],
        shape: [0.8 + 5.2 * s, 0.1, 0, 0],
        of: [a, b, 0, 0],
      });
    }
    fillCurves(this.items.links, curves);
  }

  /** Lists of lines: pairs of (place, how), see LINE. @param {"edges"|"fileLinks"|"strong"} name */
  setLines(name, pairs) {
    this.items[name].fill(pairs);
  }

  /** What is found, selected, pointed at: see `marksOf`. */
  setMarks(graph, marks) {
    const { rings, lit, ways, strong } = this.items;
    rings.fill(Float32Array.from(marks.rings.flatMap(({ disc, ring, tint }) => [...disc, 0, ...ring, 0, ...tint])));
    lit.fill(Float32Array.from(marks.dots.flatMap((i) => [graph.x[i], graph.y[i], graph.size[i], graph.color[i]])));
    fillCurves(ways, marks.ways);
    strong.fill(marks.lines);
  }

  #use(name, values) {
    const { program, set } = this.programs[name];
    this.gl.useProgram(program);
    set(this.common);
    set(values);
  }

  #texture(unit, texture) {
    this.gl.activeTexture(this.gl.TEXTURE0 + unit);
    this.gl.bindTexture(this.gl.TEXTURE_2D, texture);
  }

  /**
   * Draws one picture.
   * @param {object} frame camera; dpr; levels (`levelsOf`); dim and `edgeAlpha`, `fileAlpha` (0 to 1);
   *   focus {community, file} (places, -1 for none); flow [strength, phase]; `most` lines of one kind
   */
  draw({ camera, dpr, levels, dim, edgeAlpha, fileAlpha, focus, flow, most }) {
    const { gl, items, canvas, theme } = this;
    const { far, mid, near, files } = levels;
    const keep = 1 - 0.78 * dim; // how much of what is not lit stays
    const [r, g, b] = theme.bg;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(r, g, b, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    this.common = {
      uCamera: [camera.x, camera.y],
      uScale: camera.scale * dpr,
      uView: [canvas.width, canvas.height],
      uDpr: dpr,
      uPalette: 0,
      uEnds: 1,
      uShapes: 2,
      uBack: theme.bg,
    };
    this.#texture(0, this.textures.palette);
    this.#texture(1, this.textures.ends);

    const fill = (theme.dark ? 0.13 : 0.12) * (1 - 0.55 * files) * keep;
    this.#use("DISC", {
      uAppear: [0, 1],
      uFocus: focus.community,
      uLook: [fill * 0.75, fill * 1.5, (0.5 - 0.22 * near) * keep, 1.1 * dpr],
    });
    items.communities.draw();
    if (far > 0) {
      this.#use("CURVE", { uGlow: 0, uSoft: 1, uFocus: focus.community, uAlpha: far * keep * (1 - 0.5 * dim), uFlow: [0, 0] });
      items.links.draw();
    }
    if (files > 0) {
      const alpha = files * (1 - 0.35 * near) * keep;
      this.#use("DISC", {
        uAppear: [2.5 * dpr, 5 * dpr],
        uFocus: focus.file,
        uLook: [0.1 * alpha, 0.17 * alpha, 0.55 * alpha, dpr],
      });
      items.files.draw();
    }
    if (mid > 0 && items.fileLinks.count) {
      this.#texture(1, this.textures.files);
      this.#use("LINE", {
        uByKind: 0,
        uWidth: [0.7 * dpr, 3 * dpr],
        uStrength: [0.14, 0.7],
        uLong: [220 * dpr, 1100 * dpr],
        uLongAlpha: 0.25,
        uAlpha: mid * fileAlpha * keep * (1 - 0.5 * dim),
      });
      items.fileLinks.draw(most);
      this.#texture(1, this.textures.ends);
    }
    const byKind = { uByKind: 1, uKinds: this.kinds };
    if (near > 0) {
      this.#use("LINE", {
        ...byKind,
        uFaint: Float32Array.from(FAINT),
        uWidth: [0.8 * dpr, 2.2 * dpr],
        uStrength: [0.22, 0.85],
        uLong: [160 * dpr, 1000 * dpr],
        uLongAlpha: 0.14,
        uAlpha: near * edgeAlpha * keep * (1 - 0.6 * dim),
      });
      items.edges.draw(most);
    }
    if (items.strong.count) {
      this.#use("LINE", {
        ...byKind,
        uFaint: new Float32Array(6).fill(1),
        uWidth: [1.1 * dpr, 2.8 * dpr],
        uStrength: [0.5, 0.95],
        uLong: [400 * dpr, 4000 * dpr],
        uLongAlpha: 0.5,
        uAlpha: Math.min(1, Math.max(0.4, Math.sqrt(90 / items.strong.count))) * (1 - 0.55 * dim),
      });
      items.strong.draw();
    }
    const dot = { uLeast: 0.62 * dpr, uHalo: camera.scale > 3.2 ? Math.min(1.5, (camera.scale - 3.2) * 0.6) * dpr : 0 };
    this.#use("DOT", { ...dot, uAlpha: (0.82 + 0.18 * files) * keep });
    items.dots.draw();
    if (items.ways.count) {
      this.#use("CURVE", { uGlow: 9 * dpr, uSoft: 0, uFocus: -1, uAlpha: 1, uFlow: flow });
      items.ways.draw();
    }
    if (items.lit.count) {
      this.#use("DOT", { ...dot, uLeast: 3 * dpr, uHalo: 1.2 * dpr, uAlpha: 1 });
      items.lit.draw();
    }
    if (items.rings.count) {
      this.#use("RING", {});
      items.rings.draw();
    }
  }

  free() {
    Object.values(this.items).forEach((one) => one.free());
    Object.values(this.textures).forEach((texture) => this.gl.deleteTexture(texture));
    Object.values(this.programs).forEach(({ program }) => this.gl.deleteProgram(program));
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }
}

function rendererName(gl) {
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  return String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
}

function interleave(...columns) {
  const k = columns.length;
  const out = new Float32Array(k * columns[0].length);
  columns.forEach((column, c) => column.forEach((value, i) => (out[k * i + c] = value)));
  return out;
}

function fillCurves(shapes, curves) {
  shapes.fill(Float32Array.from(curves.flatMap(({ ends, trim, from, to, shape, of }) => [ends, trim, from, to, shape, of].flat())));
}
