"""The page at /docs, made by the browser from the OpenAPI description; it loads nothing from other hosts."""

PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Warren: HTTP API</title>
<style>
:root { color-scheme: light dark; --line: #8885; --mild: #8882 }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
details { border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0; padding: .4rem .8rem }
summary { cursor: pointer }
code, pre, input { font: 14px/1.4 ui-monospace, monospace }
b { display: inline-block; min-width: 4.5rem }
label { display: block; margin: .3rem 0 }
input { width: 20rem; max-width: 100%; padding: .2rem .4rem }
pre { background: var(--mild); padding: .6rem; overflow: auto; max-height: 30rem; border-radius: 6px }
small { opacity: .7; display: block }
button { font: inherit; padding: .2rem .8rem }
</style>
<h1>Warren: HTTP API</h1>
<p>Burrow's endpoints and Warren's own. The OpenAPI description is at <a href="openapi.json">openapi.json</a>.</p>
<main id="operations">Loading…</main>
<script>
const create = (tag, text) => Object.assign(document.createElement(tag), { textContent: text || "" })
function show(path, method, operation) {
  const details = create("details"), summary = create("summary"), form = create("form"), output = create("pre")
  summary.append(create("b", method.toUpperCase()), create("code", path), create("small", operation.summary))
  const fields = (operation.parameters || []).map(parameter => {
    const label = create("label", parameter.name + " "), input = create("input")
    input.required = !!parameter.required
    input.title = parameter.description || ""
    label.append(input, create("small", parameter.description))
    form.append(label)
    return [parameter, input]
  })
  let body = null
  if (operation.requestBody) {
    const label = create("label", "body ")
    body = create("input")
    body.value = JSON.stringify(operation.requestBody.content["application/json"].example)
    label.append(body)
    form.append(label)
  }
  form.append(create("button", "Send"))
  output.hidden = true
  form.onsubmit = async event => {
    event.preventDefault()
    if (method === "delete" && !confirm(operation.summary + "?")) return
    let url = path
    const query = new URLSearchParams()
    for (const [parameter, input] of fields) {
      if (parameter.in === "path") url = url.replace("{" + parameter.name + "}", encodeURIComponent(input.value))
      else if (input.value) query.set(parameter.name, input.value)
    }
    output.hidden = false
    output.textContent = "…"
    try {
      const target = url.slice(1) + (query.size ? "?" + query : "")
      const headers = body ? { "Content-Type": "application/json" } : {}
      const response = await fetch(target, { method: method.toUpperCase(), body: body && body.value, headers })
      let text = await response.text()
      try { text = JSON.stringify(JSON.parse(text), null, 2) } catch {}
      output.textContent = response.status + " /" + target + "\\n\\n" + text.slice(0, 200000)
    } catch (error) { output.textContent = String(error) }
  }
  details.append(summary, form, output)
  return details
}
fetch("openapi.json").then(response => response.json()).then(description => {
  const main = document.getElementById("operations")
  main.textContent = ""
  for (const [path, operations] of Object.entries(description.paths))
    for (const [method, operation] of Object.entries(operations)) main.append(show(path, method, operation))
}).catch(error => { document.getElementById("operations").textContent = String(error) })
</script>
</html>
"""
