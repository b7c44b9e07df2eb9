package main

import (
	"encoding/json"
	"sort"
	"text/template"
	"time"

	"conformance/protocol"
)

// What Burrow's helpers answer. Topics are sorted here, where Burrow leaves their order to chance.
var helpers = template.FuncMap{
	"jsonencoder": func(value any) string {
		data, _ := json.Marshal(value)
		return string(data)
	},
	"topicsbystatus": func(partitions []*protocol.PartitionStatus) map[string][]string {
		seen := map[string]bool{}
		topics := map[string][]string{}
		for _, partition := range partitions {
			status := partition.Status.String()
			if !seen[status+" "+partition.Topic] {
				topics[status] = append(topics[status], partition.Topic)
			}
			seen[status+" "+partition.Topic] = true
		}
		for _, names := range topics {
			sort.Strings(names)
		}
		return topics
	},
	"partitioncounts": func(partitions []*protocol.PartitionStatus) map[string]int {
		counts := map[string]int{"warn": 0, "stop": 0, "stall": 0, "rewind": 0, "unknown": 0}
		names := map[protocol.StatusConstant]string{2: "warn", 4: "stop", 5: "stall", 6: "rewind"}
		for _, partition := range partitions {
			if name, isNamed := names[partition.Status]; isNamed {
				counts[name]++
			} else if partition.Status != 1 {
				counts["unknown"]++
			}
		}
		return counts
	},
	"add":      func(first, second int) int { return first + second },
	"minus":    func(first, second int) int { return first - second },
	"multiply": func(first, second int) int { return first * second },
	"divide":   func(first, second int) int { return first / second },
	"maxlag": func(partition *protocol.PartitionStatus) uint64 {
		if partition == nil {
			return 0
		}
		return partition.CurrentLag
	},
	"formattimestamp": func(timestamp int64, layout string) string {
		return time.Unix(0, timestamp*int64(time.Millisecond)).Format(layout)
	},
}
