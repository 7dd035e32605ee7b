//go:build ignore

// Prints, for each field of each API type, its Go type, whether an empty value is left out when it is written, and its place among
// the fields of the type.
// Run it in a module that requires k8s.io/kubernetes:  go run gotypes.go > gotypes.tsv
package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var seen = map[reflect.Type]bool{}
var lines []string
var places = map[string]int{}
var unmarshaler = reflect.TypeOf((*json.Unmarshaler)(nil)).Elem()

func name(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	host := strings.Split(parts[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	return strings.Join(append(host, parts[1:]...), ".") + "." + t.Name()
}

func fields(owner string, t reflect.Type) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("json")
		options := strings.Split(tag, ",")
		inline := f.Anonymous && options[0] == ""
		if inline {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			fields(owner, inner)
			continue
		}
		if !ok || options[0] == "-" || options[0] == "" {
			continue
		}
		kind := f.Type
		flags := ""
		if kind.Kind() == reflect.Pointer {
			flags += "p"
			kind = kind.Elem()
		}
		for _, o := range options[1:] {
			if o == "omitempty" {
				flags += "o"
			}
			if o == "omitzero" {
				flags += "z"
			}
		}
		base := kind
		for base.Kind() == reflect.Slice || base.Kind() == reflect.Map || base.Kind() == reflect.Pointer {
			base = base.Elem()
		}
		if kind.Kind() != reflect.Struct && kind.PkgPath() != "" {
			flags += "n" + kind.Kind().String()
		}
		places[owner]++
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s\t%d", owner, options[0], kind.String(), flags, places[owner]))
		walk(base)
	}
}

func walk(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] || reflect.PointerTo(t).Implements(unmarshaler) {
		return
	}
	seen[t] = true
	fields(name(t), t)
}

func main() {
	_ = apiextensions.AddToScheme(scheme.Scheme)
	_ = apiregistration.AddToScheme(scheme.Scheme)
	for _, t := range scheme.Scheme.AllKnownTypes() {
		walk(t)
	}
	sort.Strings(lines)
	fmt.Println(strings.Join(lines, "\n"))
}
