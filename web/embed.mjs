// node embed.mjs FOLDER OUT.cc: writes the files of a folder as the C++ source behind assets.h.
// The same files give the same source, byte for byte.

import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { gzipSync } from 'node:zlib';

const mimeTypes = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
};
const lineBytes = 32;

const [folder, out] = process.argv.slice(2);
if (!folder || !out) {
  console.error('usage: node embed.mjs FOLDER OUT.cc');
  process.exit(2);
}

const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
const assets = files.map(asset).sort((a, b) => (a.path < b.path ? -1 : 1));

writeFileSync(
  out,
  `// Written by web/embed.mjs from the built page.
#include "web/assets.h"

#include <array>

namespace attune {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kAssets{
${assets.map(entry).join('\n')}
};

}  // namespace

std::span<const WebAsset> WebAssets() { return kAssets; }

}  // namespace attune
`,
);

function asset(file) {
  const content = readFileSync(file);
  const zipped = gzipSync(content, { level: 9 });
  const gzip = zipped.length < content.length;
  const path = `/${relative(folder, file).split(sep).join('/')}`;
  const mime = mimeTypes[extname(file)];
  if (!mime) throw new Error(`${path}: embed.mjs knows no MIME type for ${extname(file)}`);
  const etag = `"${createHash('sha256').update(content).digest('hex').slice(0, 16)}"`;
  return { path, mime, etag, gzip, body: gzip ? zipped : content };
}

function entry({ path, mime, etag, gzip, body }) {
  const text = (value) => `"${value.replaceAll('"', '\\"')}"sv`;
  return `    WebAsset{${text(path)}, ${text(mime)}, ${text(etag)},
${literal(body)}sv, ${gzip}},`;
}

// A string literal compiles many times faster than an array of numbers. Octal escapes have three
// digits at most, so none can swallow what follows it.
function literal(body) {
  const lines = [];
  for (let i = 0; i < body.length; i += lineBytes) {
    const bytes = [...body.subarray(i, i + lineBytes)];
    lines.push(
      `        "${bytes.map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')}"`,
    );
  }
  return lines.join('\n');
}
