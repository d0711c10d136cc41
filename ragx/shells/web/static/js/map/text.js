/** Texts of labels: made harmless, cut, wrapped, measured. */

// Controls, and what turns the direction of text or hides in it: a label is one line of plain text.
const HARMFUL = /[\p{Cc}\p{Zl}\p{Zp}\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]+/gu;

/**
 * A label as one line of at most `limit` characters as a reader counts them, with an ellipsis where it is cut.
 * @param {unknown} text
 * @param {number} limit
 */
export function cleanText(text, limit) {
  // Only the beginning is looked at: labels may be as long as files.
  const start = String(text ?? "").slice(0, 8 * limit + 64);
  const plain = (start.toWellFormed?.() ?? start).replace(HARMFUL, " ").replace(/\s+/gu, " ").trim();
  return cut(plain, limit);
}

/** Cuts between characters as a reader counts them. */
export function cut(text, limit) {
  if (text.length <= limit) return text;
  const characters = graphemes(text);
  return characters.length <= limit ? text : `${characters.slice(0, limit - 1).join("").trimEnd()}…`;
}

function graphemes(text) {
  if (!Intl.Segmenter) return Array.from(text);
  return Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
}

/** Widths of texts, each measured once. */
export class Measure {
  constructor(context) {
    this.context = context;
    this.widths = new Map();
  }

  /** Width in CSS pixels of a text in a font (CSS notation). */
  width(text, font) {
    const key = `${font}\n${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > 20000) this.widths.clear();
      if (this.context.font !== font) this.context.font = font;
      width = this.context.measureText(text).width;
      this.widths.set(key, width);
    }
    return width;
  }

  /**
   * Breaks a text between words into lines of about equal width.
   * @param {number} width CSS pixels; a longer word stands out
   * @param {number} most lines; the last one ends in an ellipsis where text is left
   * @returns {string[]}
   */
  wrap(text, font, width, most) {
    const words = text.split(" ");
    const fill = (room) => {
      const lines = [];
      for (const word of words) {
        const last = lines.length - 1;
        if (last >= 0 && this.width(`${lines[last]} ${word}`, font) <= room) lines[last] += ` ${word}`;
        else lines.push(word);
      }
      return lines;
    };
    let lines = fill(width);
    if (lines.length > most) {
      lines.length = most;
      lines[most - 1] = `${lines[most - 1].replace(/[\s\p{Pd},;:]+$/u, "")}…`;
    } else if (lines.length > 1) {
      // As many lines, but about equally long.
      const least = this.width(text, font) / lines.length;
      for (let room = least; room < width; room += 8) {
        const even = fill(room);
        if (even.length > lines.length) continue;
        lines = even;
        break;
      }
    }
    return lines.map((line) => cut(line, 40));
  }
}
