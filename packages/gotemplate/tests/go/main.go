// Renders the templates of the tests with Go's own text/template.
//
// To make the outputs anew after a change of the cases:
//
//	cd packages/gotemplate/tests/go && go run . ../cases ../outputs
//
// Each file of cases has its data and a list of templates; the file of the same name among the outputs has, for each
// template, what Go wrote or the error it gave. In data {"$time": [nanoseconds, zone, offset]} is a time. Data with
// "$message" is one of Burrow's messages. Where a value points to is written as one address, since it is another each
// time.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"text/template"
	"time"

	"conformance/protocol"
)

type cases struct {
	Data      json.RawMessage `json:"data"`
	Templates []string        `json:"templates"`
}

type outcome struct {
	Template string  `json:"template"`
	Output   *string `json:"output,omitempty"`
	Error    string  `json:"error,omitempty"`
}

type message struct {
	Cluster string
	Group   string
	ID      string
	Start   []any
	Extras  map[string]string
	Result  protocol.ConsumerGroupStatus
}

var address = regexp.MustCompile(`0x[0-9a-f]{9,13}\b`)

func main() {
	time.Local = time.FixedZone("CET", 3600)
	files, err := filepath.Glob(filepath.Join(os.Args[1], "*.json"))
	check(err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		check(err)
		var read cases
		check(json.Unmarshal(content, &read))
		var outcomes []outcome
		for _, text := range read.Templates {
			outcomes = append(outcomes, run(text, dataOf(read.Data)))
		}
		var written bytes.Buffer
		encoder := json.NewEncoder(&written)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		check(encoder.Encode(outcomes))
		check(os.WriteFile(filepath.Join(os.Args[2], filepath.Base(file)), written.Bytes(), 0o644))
	}
}

func run(text string, data any) (result outcome) {
	result.Template = text
	defer func() {
		if problem := recover(); problem != nil {
			result.Error = fmt.Sprintf("template: case:1: %v", problem)
		}
	}()
	parsed, err := template.New("case").Funcs(helpers).Parse(text)
	if err == nil {
		var output bytes.Buffer
		if err = parsed.Execute(&output, data); err == nil {
			written := address.ReplaceAllString(string([]rune(output.String())), "0xc000010000")
			result.Output = &written
			return
		}
	}
	result.Error = address.ReplaceAllString(err.Error(), "0xc000010000")
	return
}

func dataOf(raw json.RawMessage) any {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var data any
	check(decoder.Decode(&data))
	if entries, isMap := data.(map[string]any); isMap && entries["$message"] != nil {
		var wrapped struct {
			Message message `json:"$message"`
		}
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		check(decoder.Decode(&wrapped))
		read := wrapped.Message
		return struct {
			Cluster string
			Group   string
			ID      string
			Start   time.Time
			Extras  map[string]string
			Result  protocol.ConsumerGroupStatus
		}{read.Cluster, read.Group, read.ID, timeOf(read.Start), read.Extras, read.Result}
	}
	return converted(data)
}

func converted(data any) any {
	switch data := data.(type) {
	case json.Number:
		if whole, err := data.Int64(); err == nil {
			return int(whole)
		}
		number, err := data.Float64()
		check(err)
		return number
	case []any:
		for place := range data {
			data[place] = converted(data[place])
		}
	case map[string]any:
		if parts, isTime := data["$time"]; isTime {
			return timeOf(parts.([]any))
		}
		for key := range data {
			data[key] = converted(data[key])
		}
	}
	return data
}

func timeOf(parts []any) time.Time {
	if len(parts) == 0 {
		return time.Time{}
	}
	nanoseconds, err := parts[0].(json.Number).Int64()
	check(err)
	offset, err := parts[2].(json.Number).Int64()
	check(err)
	zone := time.UTC
	if name := parts[1].(string); name != "UTC" {
		zone = time.FixedZone(name, int(offset))
	}
	return time.Unix(0, nanoseconds).In(zone)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
