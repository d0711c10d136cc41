/** The map of a corpus: chunks as dots in the discs of their files, those in discs of communities. */

import { Camera } from "./camera.js";
import { Clock, Pace } from "./clock.js";
import { EDGE_KINDS, readTheme } from "./color.js";
import { readGraph } from "./graph.js";
import { InView } from "./inview.js";
import { Labels } from "./labels.js";
import { levelsOf } from "./levels.js";
import { sumLinks } from "./links.js";
import { NOTHING, locate, locateLit, marksOf, maskOf, targetOf } from "./marks.js";
import { besides, boxOfTarget, pick } from "./places.js";
import { Pointer } from "./pointer.js";
import { Renderer } from "./renderer.js";

export { EDGE_KINDS, communityColor, kindColor } from "./color.js";

const SETTLE_MS = 90; // what is in view is looked up at most this often
const VIEW_MS = 150;
const FLOW_MS = 2600;
const NO_LINKS = { count: 0, a: new Uint32Array(0), b: new Uint32Array(0), weight: new Float32Array(0) };

/** See each method; lengths are CSS pixels where "map units" is not said. */
export class GraphMap {
  #lost = false;
  #target = null;
  #hover = null; // where the pointer came to since the last picture
  #at = null; // where it is
  #hovered = NOTHING;
  #selected = NOTHING;
  #lit = null;
  #given = null;
  #fitted = true;
  #wasMoving = false;
  #dim = 0;
  #alphas = { edges: 1, files: 1 };
  #stale = { view: true, links: true, marks: true, at: -Infinity };
  #drawn = { x: NaN, y: NaN, scale: NaN };
  #flowEnd = 0;
  #viewTimer = 0;
  #links = { communities: NO_LINKS, files: NO_LINKS };
  #marks = null;
  #graph = readGraph(null);
  #mask = maskOf(EDGE_KINDS);
  #stop = new AbortController();

  /**
   * @param {HTMLElement} host gets two canvases that fill it; its size may change
   * @param {{onHover?: Function, onSelect?: Function, onView?: Function}} calls targets are
   *   `{type: "chunk"|"file"|"community", id|file|community, label}` or null; views as of `view()`
   */
  constructor(host, { onHover, onSelect, onView } = {}) {
    this.host = host;
    this.calls = { onHover, onSelect, onView };
    this.canvases = [0, 1].map(() => {
      const canvas = document.createElement("canvas");
      canvas.setAttribute("aria-hidden", "true");
      Object.assign(canvas.style, { position: "absolute", inset: "0", width: "100%", height: "100%", display: "block" });
      return canvas;
    });
    this.renderer = new Renderer(this.canvases[0]);
    if (getComputedStyle(host).position === "static") host.style.position = "relative";
    host.append(...this.canvases);
    this.labels = new Labels(this.canvases[1]);
    this.camera = new Camera();
    this.pace = new Pace(this.renderer.software);
    this.inView = new InView();
    this.clock = new Clock((now, dt) => this.#frame(now, dt));
    this.#listen();
    this.setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
    this.setGraph(null);
    this.#resize();
  }

  #listen() {
    const { signal } = this.#stop;
    const [canvas, surface] = this.canvases;
    canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      this.#lost = true;
    }, { signal });
    canvas.addEventListener("webglcontextrestored", () => {
      this.#lost = false;
      this.renderer.restore(this.#graph, this.#links.communities, this.theme);
      this.#refresh("links", "marks");
    }, { signal });
    const motion = matchMedia("(prefers-reduced-motion: reduce)");
    const still = () => (this.camera.still = motion.matches);
    motion.addEventListener("change", still, { signal });
    still();
    this.sizes = new ResizeObserver(() => this.#resize());
    this.sizes.observe(this.host);
    const cursor = (name) => (surface.style.cursor = name);
    cursor("grab");
    this.pointer = new Pointer(surface, {
      pan: (dx, dy) => this.panBy(dx, dy),
      zoom: (factor, x, y, smooth) => this.#zoom(factor, x, y, smooth),
      hover: (x, y) => {
        this.#hover = this.#at = [x, y];
        this.clock.request();
      },
      leave: () => {
        this.#hover = this.#at = null;
        this.#setHovered(NOTHING);
      },
      grab: (held) => {
        this.#at = null; // until it moves freely again
        cursor(held ? "grabbing" : "grab");
      },
      click: (x, y, touch) => {
        const place = this.#pick(x, y, touch);
        const target = targetOf(this.#graph, place);
        this.select(target);
        this.calls.onSelect?.(target);
      },
    });
  }

  #pick(x, y, touch) {
    const lit = new Set([...(this.#lit?.hits ?? []).map(({ node }) => node), ...(this.#lit?.path ?? [])]);
    return pick(this.#graph, this.camera, this.#levels(), lit, x, y, touch);
  }

  #levels() {
    return levelsOf(this.camera.scale, this.camera.fitScale);
  }

  #setHovered(place) {
    const key = ({ type, nodes, files, community }) => `${type} ${nodes[0]} ${files[0]} ${community}`;
    if (key(place) === key(this.#hovered)) return;
    this.#hovered = place;
    this.canvases[1].style.cursor = place.type ? "pointer" : "grab";
    this.#refresh("marks");
    this.calls.onHover?.(targetOf(this.#graph, place));
  }

  #refresh(...what) {
    for (const name of what) this.#stale[name] = true;
    this.#stale.view = true;
    this.#stale.at = -Infinity;
    this.clock.request();
  }

  #resize() {
    const dpr = Math.min(2, Math.max(1, globalThis.devicePixelRatio || 1));
    const [width, height] = [this.host.clientWidth, this.host.clientHeight];
    if (!width || !height) return;
    if (width === this.camera.width && height === this.camera.height && dpr === this.dpr) return;
    this.dpr = dpr;
    Object.assign(this.camera, { width, height });
    for (const canvas of this.canvases) {
      canvas.width = Math.round(width * dpr);
      canvas.height = Math.round(height * dpr);
    }
    if (this.#fitted) this.camera.jump(this.camera.fitting(this.camera.box));
    // Resized canvases are empty: they are painted before the browser shows them.
    this.#refresh();
    this.clock.run();
  }

  /**
   * Shows a graph. The view stays where `keepView` is set and a graph was there; else all is shown.
   * What is selected and lit is looked up again.
   * @param {object} doc ragx.graph.v1
   */
  setGraph(doc, { keepView = false } = {}) {
    const graph = readGraph(doc);
    const keep = keepView && this.#graph.n > 0 && graph.n > 0;
    this.#graph = graph;
    this.camera.box = graph.box;
    this.inView.setGraph(graph);
    this.labels.setGraph(graph);
    this.#links = { communities: NO_LINKS, files: NO_LINKS };
    this.#hovered = NOTHING;
    this.#selected = locate(graph, this.#target);
    this.#lit = locateLit(graph, this.#given);
    if (!this.#lost) {
      this.renderer.setGraph(graph);
      this.renderer.setTheme(graph, NO_LINKS, this.theme);
    }
    if (!keep || this.#fitted) {
      this.camera.jump(this.camera.fitting(graph.box));
      this.#fitted = true;
    }
    this.#refresh("links", "marks");
  }

  /** Reads `--map-bg`, `--map-ink`, `--map-muted`, `--map-accent` and the font of the host. */
  setTheme(dark) {
    this.theme = readTheme(this.host, Boolean(dark));
    this.labels.setTheme(this.theme);
    if (!this.#lost && this.renderer.theme) this.renderer.setTheme(this.#graph, this.#links.communities, this.theme);
    this.#refresh("marks");
  }

  /** Kinds of edges that are drawn, and that links are summed of. @param {Iterable<string>} kinds */
  setKinds(kinds) {
    this.#mask = maskOf(kinds);
    this.#refresh("links", "marks");
  }

  /** Lights hits and a way, and dims the rest; null ends it. Ids that are not on the map are ignored. */
  light(lit) {
    this.#given = lit ?? null;
    this.#lit = locateLit(this.#graph, this.#given);
    this.#flowEnd = this.#lit?.ways.length && !this.camera.still ? performance.now() + FLOW_MS : 0;
    this.#refresh("marks");
  }

  /** Rings a target and shows the edges of a chunk; null ends it. */
  select(target) {
    this.#target = target ?? null;
    this.#selected = locate(this.#graph, this.#target);
    this.#refresh("marks");
  }

  /** Flies to a target, or to all chunks of `ids`. @param {{zoom?: number}} options a fixed scale */
  flyTo(target, { zoom } = {}) {
    const { box, count, single } = boxOfTarget(this.#graph, target);
    if (!count) return;
    const { stretch } = this.#levels();
    const close = 8 * stretch;
    const most = single ? Math.min(24, Math.max(close, this.camera.scale)) : Math.min(20, 1.25 * close);
    this.#fly(this.camera.fitting(box, { scale: zoom, most, pad: 48 }), false);
  }

  /** Shows the whole map. */
  fit() {
    this.#fly(this.camera.fitting(this.camera.box), true);
  }

  #fly(view, fitted) {
    this.#fitted = fitted;
    if (this.#flowEnd) this.#flowEnd = performance.now() + FLOW_MS;
    this.camera.fly(view, performance.now());
    this.clock.request();
  }

  /** Zooms in the middle of what panels leave free; above 1 comes nearer. */
  zoomBy(factor) {
    this.#zoom(factor, ...this.camera.middle, true);
  }

  #zoom(factor, x, y, smooth) {
    if (!(factor > 0)) return;
    this.#fitted = false;
    this.camera.zoomAt(factor, x, y, smooth);
    this.clock.request();
  }

  /** Moves the view by CSS pixels: positive dx shows what lies further right. */
  panBy(dx, dy) {
    this.#fitted = false;
    this.camera.pan(dx, dy);
    this.clock.request();
  }

  /** @returns {{x: number, y: number, scale: number}} map point in the host's middle; pixels per map unit */
  view() {
    return this.camera.view;
  }

  /** Jumps to a view as of `view()`. */
  setView(view) {
    this.#fitted = false;
    this.camera.jump(view);
    this.clock.request();
  }

  /** Pixels covered by panels: what is fitted or flown to lies in the rest. */
  setInsets(insets) {
    Object.assign(this.camera.insets, insets);
    if (this.#fitted && !this.camera.flight) this.camera.jump(this.camera.fitting(this.camera.box));
    this.#refresh();
  }

  /** What is joined to the selected chunk, file or community and lies most in a direction, or null. */
  neighbourIn(direction) {
    this.#sumLinks();
    return targetOf(this.#graph, besides(this.#graph, this.#selected, this.#links, this.#mask, direction));
  }

  /** Counts and script time in milliseconds of the last 200 frames. */
  stats() {
    const { n, m } = this.#graph;
    const { near, mid } = this.#levels();
    const edgesDrawn =
      (near > 0 ? this.inView.edgeCount : 0) +
      (mid > 0 ? this.inView.fileLinkCount : 0) +
      (this.#marks?.lines.length ?? 0) / 2;
    return { nodes: n, edges: m, edgesDrawn, labels: this.labels.count, scriptMs: this.clock.scriptMs, frames: this.clock.frames };
  }

  destroy() {
    this.#stop.abort();
    this.clock.stop();
    clearTimeout(this.#viewTimer);
    this.sizes.disconnect();
    this.pointer.destroy();
    if (!this.#lost) this.renderer.free();
    this.canvases.forEach((canvas) => canvas.remove());
  }

  #sumLinks() {
    if (!this.#stale.links) return;
    this.#stale.links = false;
    const graph = this.#graph;
    this.#links.communities = sumLinks(graph, graph.community, graph.communities.count, this.#mask);
    this.#links.files = sumLinks(graph, graph.group, graph.groups.count, this.#mask);
    if (this.#lost) return;
    this.renderer.setLinks(graph, this.#links.communities);
    this.renderer.setFileLinks(graph, this.#links.files);
    this.inView.forget();
  }

  #frame(now, dt) {
    const { camera, renderer, labels } = this;
    if (this.#lost || !this.dpr) return false;
    camera.step(now, dt);
    const levels = this.#levels();
    const moved = camera.x !== this.#drawn.x || camera.y !== this.#drawn.y || camera.scale !== this.#drawn.scale;
    if (moved) {
      this.#drawn = camera.view;
      this.#stale.view = true;
      this.#tellView();
    }
    // The map may also have moved under a pointer that rests.
    const under = this.#hover ?? (this.#wasMoving && !camera.moving ? this.#at : null);
    if (under && !camera.flight) {
      this.#setHovered(this.#pick(...under));
      this.#hover = null;
    }
    this.#wasMoving = camera.moving;
    this.#sumLinks();
    if (this.#stale.marks) {
      this.#marks = marksOf(this.#graph, this.theme, { selected: this.#selected, hovered: this.#hovered, lit: this.#lit, mask: this.#mask });
      renderer.setMarks(this.#graph, this.#marks);
      this.#stale.marks = false;
    }
    const lit = Boolean(this.#lit && (this.#lit.hits.length || this.#lit.path.length));
    if (this.#stale.view && now - this.#stale.at >= SETTLE_MS) {
      this.inView.look(camera, levels, this.#links.files, this.#mask, renderer);
      labels.choose(camera, levels, this.#marks, lit);
      this.#stale.view = false;
      this.#stale.at = now;
    }
    const most = this.pace.most(now, moved);
    const easing = this.#ease(lit, dt);
    const left = this.#flowEnd - now;
    renderer.draw({
      camera,
      levels,
      dpr: this.dpr,
      dim: this.#dim,
      edgeAlpha: this.#alphas.edges,
      fileAlpha: this.#alphas.files,
      focus: {
        community: this.#hovered.community >= 0 ? this.#hovered.community : this.#selected.community,
        file: this.#hovered.files[0] ?? this.#selected.files[0] ?? -1,
      },
      flow: left > 0 ? [Math.min(1, left / 600), (now / 900) % 1] : [0, 0],
      most,
    });
    const fading = labels.draw(camera, levels, this.dpr, camera.still ? Infinity : dt);
    return camera.moving || this.#stale.view || easing || fading || left > 0 || most < Infinity;
  }

  /** Moves what changes softly towards where it shall be; true while it is not there. */
  #ease(lit, dt) {
    const share = this.camera.still ? 1 : 1 - Math.exp(-dt / 110);
    const thin = (count, some, least) => Math.min(1, Math.max(least, Math.sqrt(some / Math.max(1, count))));
    const goals = {
      dim: lit ? 1 : 0,
      edges: thin(this.inView.edgeCount, 1600, 0.28),
      files: thin(this.inView.fileLinkCount, 500, 0.35),
    };
    const ease = (value, goal) => (Math.abs(goal - value) < 0.01 ? goal : value + (goal - value) * share);
    this.#dim = ease(this.#dim, goals.dim);
    this.#alphas.edges = ease(this.#alphas.edges, goals.edges);
    this.#alphas.files = ease(this.#alphas.files, goals.files);
    return this.#dim !== goals.dim || this.#alphas.edges !== goals.edges || this.#alphas.files !== goals.files;
  }

  #tellView() {
    if (!this.calls.onView || this.#viewTimer) return;
    this.#viewTimer = setTimeout(() => {
      this.#viewTimer = 0;
      this.calls.onView(this.view());
    }, VIEW_MS);
  }
}
