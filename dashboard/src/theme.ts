// Light or dark: as the system has it, until the user chooses.
import { effect, signal } from "@preact/signals"

type Theme = "light" | "dark"

const prefersDark = matchMedia("(prefers-color-scheme: dark)")

function storedTheme(): Theme | null {
  try {
    const stored = localStorage.getItem("warren-theme")
    return stored === "light" || stored === "dark" ? stored : null
  } catch {
    return null
  }
}

export const theme = signal<Theme>(storedTheme() ?? (prefersDark.matches ? "dark" : "light"))

prefersDark.addEventListener("change", () => {
  if (storedTheme() === null) theme.value = prefersDark.matches ? "dark" : "light"
})

effect(() => {
  document.documentElement.dataset.theme = theme.value
})

export function toggleTheme() {
  theme.value = theme.value === "dark" ? "light" : "dark"
  try {
    localStorage.setItem("warren-theme", theme.value)
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}
