/** A little order over WebGL2: programs, lists of shapes, textures of numbers. */

import { ROW } from "./shaders.js";

/** A context for the map. Throws `Error("no WebGL2")` where there is none. */
export function openContext(canvas) {
  const gl = canvas.getContext("webgl2", {
    alpha: false,
    antialias: false,
    depth: false,
    stencil: false,
    powerPreference: "default",
  });
  if (!gl) throw new Error("no WebGL2");
  return gl;
}

/**
 * Compiles a program; `uniforms` sets a uniform by name: a number, or an array of 2 to 4, or, for
 * arrays, a Float32Array.
 * @param {WebGL2RenderingContext} gl
 * @param {{vertex: string, fragment: string}} source
 */
export function buildProgram(gl, source) {
  const program = gl.createProgram();
  for (const [type, text] of [
    [gl.VERTEX_SHADER, source.vertex],
    [gl.FRAGMENT_SHADER, source.fragment],
  ]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
    const logs = gl.getAttachedShaders(program).map((shader) => gl.getShaderInfoLog(shader));
    throw new Error(`the map's shader does not build: ${[gl.getProgramInfoLog(program), ...logs].join(" ").trim()}`);
  }
  const setters = new Map();
  const count = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS) ?? 0;
  for (let i = 0; i < count; i += 1) {
    const { name, type, size } = gl.getActiveUniform(program, i);
    const where = gl.getUniformLocation(program, name);
    setters.set(name.replace("[0]", ""), setterOf(gl, where, type, size));
  }
  return { program, set: (values) => Object.entries(values).forEach(([name, value]) => setters.get(name)?.(value)) };
}

function setterOf(gl, where, type, size) {
  switch (type) {
    case gl.FLOAT:
      return size > 1 ? (v) => gl.uniform1fv(where, v) : (v) => gl.uniform1f(where, v);
    case gl.FLOAT_VEC2:
      return (v) => gl.uniform2fv(where, v);
    case gl.FLOAT_VEC3:
      return (v) => gl.uniform3fv(where, v);
    case gl.FLOAT_VEC4:
      return (v) => gl.uniform4fv(where, v);
    default: // int, bool, sampler
      return (v) => gl.uniform1i(where, v);
  }
}

/** A list of shapes in a texture, drawn without attributes: `texels` of four floats for each, or,
 * where that is 0, one texel of two whole numbers. */
export class Shapes {
  /**
   * @param {WebGL2RenderingContext} gl
   * @param {{texels: number, quads: number}} program that draws them
   */
  constructor(gl, { texels, quads }) {
    this.gl = gl;
    this.vertices = 6 * quads;
    this.numbers = texels ? 4 * texels : 2; // of one shape
    this.count = 0;
    this.formats = texels ? [gl.RGBA32F, gl.RGBA, gl.FLOAT] : [gl.RG32UI, gl.RG_INTEGER, gl.UNSIGNED_INT];
    this.rowNumbers = ROW * (texels ? 4 : 2);
    this.staged = null;
    this.texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.texture);
    unfiltered(gl);
    this.fill(texels ? new Float32Array(0) : new Uint32Array(0));
  }

  /** Puts other shapes into the list. @param {Float32Array|Uint32Array} values `numbers` for each */
  fill(values) {
    const { gl, rowNumbers } = this;
    const [inner, format, type] = this.formats;
    const rows = Math.max(1, Math.ceil(values.length / rowNumbers));
    const grown = !this.staged || this.staged.length < rows * rowNumbers;
    if (grown) this.staged = new values.constructor(rows * rowNumbers);
    this.staged.set(values);
    this.count = values.length / this.numbers;
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.texture);
    if (grown) gl.texImage2D(gl.TEXTURE_2D, 0, inner, ROW, rows, 0, format, type, this.staged);
    else gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, ROW, rows, format, type, this.staged);
  }

  /** Draws the first ones of the list. */
  draw(most = Infinity) {
    const { gl } = this;
    const count = Math.min(this.count, Math.floor(most));
    if (!count) return;
    gl.activeTexture(gl.TEXTURE2);
    gl.bindTexture(gl.TEXTURE_2D, this.texture);
    gl.drawArrays(gl.TRIANGLES, 0, this.vertices * count);
  }

  free() {
    this.gl.deleteTexture(this.texture);
  }
}

/**
 * A texture that shaders read by place.
 * @param {WebGL2RenderingContext} gl
 * @param {Float32Array|Uint8Array} values four per texel: floats as they are, bytes as 0 to 1
 * @param {number} width texels in a row; the last row is filled up with zeros
 */
export function dataTexture(gl, values, width = ROW) {
  const height = Math.max(1, Math.ceil(values.length / 4 / width));
  const texels = new values.constructor(width * height * 4);
  texels.set(values);
  const texture = gl.createTexture();
  gl.activeTexture(gl.TEXTURE0);
  gl.bindTexture(gl.TEXTURE_2D, texture);
  unfiltered(gl);
  const [format, type] = values instanceof Float32Array ? [gl.RGBA32F, gl.FLOAT] : [gl.RGBA8, gl.UNSIGNED_BYTE];
  gl.texImage2D(gl.TEXTURE_2D, 0, format, width, height, 0, gl.RGBA, type, texels);
  return texture;
}

function unfiltered(gl) {
  for (const filter of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, filter, gl.NEAREST);
  for (const wrap of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, wrap, gl.CLAMP_TO_EDGE);
}
