// Builds the dashboard into the folder that the server serves: a script, a style sheet, the page that loads them, and
// the licences of the third-party code in them.
import { createHash } from "node:crypto"
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { basename } from "node:path"
import { build } from "esbuild"

const here = new URL(".", import.meta.url).pathname
const out = new URL("../src/warren/web/static/", import.meta.url).pathname

await rm(out, { recursive: true, force: true })
await mkdir(out, { recursive: true })
const result = await build({
  absWorkingDir: here,
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
// The licences demand that they come along with the code; most of it has no comment that says so.
const packages = new Set(
  Object.keys(result.metafile.inputs).flatMap((path) => path.match(/node_modules\/(@[^/]+\/)?[^/]+/)?.[0] ?? []),
)
const licences = await Promise.all([...packages].sort().map(licenceOf))
const notices = licences.join(`\n${"-".repeat(80)}\n\n`)
const noticesName = `notices-${createHash("sha256").update(notices).digest("hex").slice(0, 8).toUpperCase()}.txt`
await writeFile(out + noticesName, notices)

const names = Object.keys(result.metafile.outputs).map((path) => basename(path))
const nameOf = (ending) => names.find((name) => name.endsWith(ending))
const page = await readFile(new URL("src/index.html", import.meta.url), "utf8")
const links = { "{script}": nameOf(".js"), "{style}": nameOf(".css"), "{notices}": noticesName }
await writeFile(
  `${out}index.html`,
  page.replace(/\{\w+\}/g, (link) => links[link]),
)
await writeFile(`${out}icon.svg`, await readFile(new URL("src/icon.svg", import.meta.url)))

async function licenceOf(folder) {
  const { name, version, license } = JSON.parse(await readFile(`${here}${folder}/package.json`, "utf8"))
  const file = (await readdir(here + folder)).find((file) => /^licen[cs]e/i.test(file))
  if (!file) throw new Error(`${name} has no licence file, and may not be built in without its licence`)
  return `${name} ${version} (${license})\n\n${(await readFile(`${here}${folder}/${file}`, "utf8")).trim()}\n`
}
