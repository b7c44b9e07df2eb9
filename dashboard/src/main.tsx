import { render } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { announcement } from "./actions"
import { duration } from "./format"
import { GroupPage } from "./pages/group"
import { GroupsPage } from "./pages/groups"
import { IncidentPage } from "./pages/incident"
import { IncidentsPage } from "./pages/incidents"
import { OverviewPage } from "./pages/overview"
import { TopicPage } from "./pages/topic"
import { now, overview, staleReason, startPolling } from "./polling"
import { route } from "./route"
import "./style.css"
import { theme, toggleTheme } from "./theme"

const PAGES = {
  overview: OverviewPage,
  groups: GroupsPage,
  incidents: IncidentsPage,
  incident: IncidentPage,
  group: GroupPage,
  topic: TopicPage,
  notFound: NotFound,
}
const TITLES: Partial<Record<keyof typeof PAGES, string>> = {
  groups: "Groups",
  incidents: "Incidents",
  incident: "Incident",
}

function NotFound() {
  return (
    <p class="empty">
      Page not found. <a href="#/">Overview</a>
    </p>
  )
}

function App() {
  const { page, names } = route.value
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
        Skip to content
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
          onClick={toggleTheme}
          aria-label={`Switch to ${theme.value === "dark" ? "light" : "dark"} theme`}
        >
          {theme.value === "dark" ? "☀" : "☾"}
        </button>
      </header>
      <div role="status">
        {staleReason.value && (
          <p class="stale">
            <strong>Stale:</strong> {staleReason.value}
          </p>
        )}
      </div>
      <main id="main" tabIndex={-1} ref={main}>
        <Page key={view} />
      </main>
      <p class="announcement" aria-live="polite">
        {announcement.value}
      </p>
    </>
  )
}

function Freshness() {
  const judgedAt = overview.value?.judged_at
  return (
    <span class={`fresh ${staleReason.value ? "is-stale" : ""}`}>
      {judgedAt ? `judged ${duration(now.value - judgedAt)} ago` : "not judged yet"}
    </span>
  )
}

startPolling()
render(<App />, document.getElementById("app")!)
