// Light or dark: as the machine has it, until somebody says otherwise.
import { effect, signal } from "@preact/signals"

type Theme = "light" | "dark"

const dark = matchMedia("(prefers-color-scheme: dark)")

function remembered(): Theme | null {
  try {
    const held = localStorage.getItem("warren-theme")
    return held === "light" || held === "dark" ? held : null
  } catch {
    return null
  }
}

export const theme = signal<Theme>(remembered() ?? (dark.matches ? "dark" : "light"))

dark.addEventListener("change", () => {
  if (remembered() === null) theme.value = dark.matches ? "dark" : "light"
})

effect(() => {
  document.documentElement.dataset.theme = theme.value
})

export function turnTheme() {
  theme.value = theme.value === "dark" ? "light" : "dark"
  try {
    localStorage.setItem("warren-theme", theme.value)
  } catch {
    // Then it lasts as long as the page.
  }
}
