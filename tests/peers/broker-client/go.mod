module broker-client

go 1.22

require github.com/drycc-addons/go-open-service-broker-client/v2 v2.0.0-20240319023702-6c9b6bb332f9

require (
	github.com/go-logr/logr v1.4.1 // indirect
	k8s.io/klog/v2 v2.120.1 // indirect
)
