"""A page to browse the API with; one file, nothing from elsewhere."""

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
<p>Burrow's paths and Warren's own. The machine-readable description is at <a href="openapi.json">openapi.json</a>.</p>
<main id="paths">Loading the description.</main>
<script>
const make = (tag, text) => Object.assign(document.createElement(tag), { textContent: text || "" })
function shown(path, method, operation) {
  const box = make("details"), head = make("summary"), form = make("form"), out = make("pre")
  head.append(make("b", method.toUpperCase()), make("code", path), make("small", operation.summary))
  const fields = (operation.parameters || []).map(parameter => {
    const label = make("label", parameter.name + " "), input = make("input")
    input.required = !!parameter.required
    input.title = parameter.description || ""
    label.append(input, make("small", parameter.description))
    form.append(label)
    return [parameter, input]
  })
  let body = null
  if (operation.requestBody) {
    const label = make("label", "body ")
    body = make("input")
    body.value = JSON.stringify(operation.requestBody.content["application/json"].example)
    label.append(body)
    form.append(label)
  }
  form.append(make("button", method === "get" ? "Ask" : "Send"))
  out.hidden = true
  form.onsubmit = async event => {
    event.preventDefault()
    if (method === "delete" && !confirm(operation.summary + "?")) return
    let url = path
    const query = new URLSearchParams()
    for (const [parameter, input] of fields) {
      if (parameter.in === "path") url = url.replace("{" + parameter.name + "}", encodeURIComponent(input.value))
      else if (input.value) query.set(parameter.name, input.value)
    }
    out.hidden = false
    out.textContent = "..."
    try {
      const asked = url.slice(1) + (query.size ? "?" + query : "")
      const headers = body ? { "Content-Type": "application/json" } : {}
      const answer = await fetch(asked, { method: method.toUpperCase(), body: body && body.value, headers })
      let text = await answer.text()
      try { text = JSON.stringify(JSON.parse(text), null, 2) } catch {}
      out.textContent = answer.status + " /" + asked + "\\n\\n" + text.slice(0, 200000)
    } catch (error) { out.textContent = String(error) }
  }
  box.append(head, form, out)
  return box
}
fetch("openapi.json").then(answer => answer.json()).then(description => {
  const place = document.getElementById("paths")
  place.textContent = ""
  for (const [path, operations] of Object.entries(description.paths))
    for (const [method, operation] of Object.entries(operations)) place.append(shown(path, method, operation))
}).catch(error => { document.getElementById("paths").textContent = String(error) })
</script>
</html>
"""
