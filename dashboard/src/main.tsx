import { render } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { said } from "./act"
import { follow, now, overview, stale } from "./live"
import { GroupPage } from "./pages/group"
import { GroupsPage } from "./pages/groups"
import { IncidentPage } from "./pages/incident"
import { IncidentsPage } from "./pages/incidents"
import { OverviewPage } from "./pages/overview"
import { TopicPage } from "./pages/topic"
import { place } from "./route"
import "./style.css"
import { theme, turnTheme } from "./theme"
import { span } from "./words"

const PAGES = {
  overview: OverviewPage,
  groups: GroupsPage,
  incidents: IncidentsPage,
  incident: IncidentPage,
  group: GroupPage,
  topic: TopicPage,
  nowhere: Nowhere,
}
const TITLES: Partial<Record<keyof typeof PAGES, string>> = {
  groups: "Groups",
  incidents: "Incidents",
  incident: "Incident",
}

function Nowhere() {
  return (
    <p class="empty">
      There is nothing at this address. <a href="#/">Overview</a>
    </p>
  )
}

function App() {
  const { page, names } = place.value
  const Page = PAGES[page]
  const view = [page, ...names].join("/")
  const main = useRef<HTMLElement>(null)
  useEffect(() => {
    document.title = [TITLES[page] ?? names.at(-1), "Warren"].filter(Boolean).join(" · ")
    scrollTo(0, 0)
  }, [view])
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <header class="bar">
        <a class="brand" href="#/">
          <img src="assets/icon.svg" alt="" width="24" height="24" /> Warren
        </a>
        <nav aria-label="Pages">
          <a href="#/" aria-current={page === "overview" ? "page" : undefined}>
            Overview
          </a>
          <a href="#/groups" aria-current={page === "groups" ? "page" : undefined}>
            Groups
          </a>
          <a href="#/incidents" aria-current={page === "incidents" ? "page" : undefined}>
            Incidents
          </a>
          <a href="docs">API</a>
        </nav>
        <Freshness />
        <button
          type="button"
          class="theme"
          onClick={turnTheme}
          aria-label={`Turn the page ${theme.value === "dark" ? "light" : "dark"}`}
        >
          {theme.value === "dark" ? "☀" : "☾"}
        </button>
      </header>
      <div role="status">
        {stale.value && (
          <p class="stale">
            <strong>Stale:</strong> {stale.value}
          </p>
        )}
      </div>
      <main id="main" tabIndex={-1} ref={main}>
        <Page key={view} />
      </main>
      <p class="said" aria-live="polite">
        {said.value}
      </p>
    </>
  )
}

function Freshness() {
  const judged = overview.value?.judged_at
  return (
    <span class={`fresh ${stale.value ? "is-stale" : ""}`}>
      {judged ? `judged ${span(now.value - judged)} ago` : "not judged yet"}
    </span>
  )
}

follow()
render(<App />, document.getElementById("app")!)
