// Builds the dashboard into the folder that the server serves: a script, a style sheet, and the page that loads them.
import { mkdir, readFile, rm, writeFile } from "node:fs/promises"
import { basename } from "node:path"
import { build } from "esbuild"

const out = new URL("../src/warren/web/static/", import.meta.url).pathname

await rm(out, { recursive: true, force: true })
await mkdir(out, { recursive: true })
const result = await build({
  absWorkingDir: new URL(".", import.meta.url).pathname,
  entryPoints: { app: "src/main.tsx" },
  outdir: out,
  entryNames: "[name]-[hash]",
  bundle: true,
  minify: true,
  metafile: true,
  target: "es2022",
  format: "esm",
  jsx: "automatic",
  jsxImportSource: "preact",
  alias: { react: "preact/compat", "react-dom": "preact/compat" },
  legalComments: "inline",
  logLevel: "warning",
})
const names = Object.keys(result.metafile.outputs).map((path) => basename(path))
const nameOf = (ending) => names.find((name) => name.endsWith(ending))
const page = await readFile(new URL("src/index.html", import.meta.url), "utf8")
await writeFile(`${out}index.html`, page.replace("{script}", nameOf(".js")).replace("{style}", nameOf(".css")))
await writeFile(`${out}icon.svg`, await readFile(new URL("src/icon.svg", import.meta.url)))
